"""What `tests/unit/repository/search/answering/kept/test_kept_searches.py` proves, of an index in OpenSearch."""

import pytest

from tests.unit.repository.search.answering.kept.test_kept_searches import *  # noqa: F403 - its tests and fixtures

pytestmark: object = [pytest.mark.only("sqlite"), pytest.mark.usefixtures("shelves_on_cluster")]

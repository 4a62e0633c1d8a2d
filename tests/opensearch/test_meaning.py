"""What `tests/contract/test_meaning.py` proves, of an index in OpenSearch."""

import pytest

from tests.contract.test_meaning import *  # noqa: F403 - its tests and fixtures

pytestmark: object = [pytest.mark.only("sqlite"), pytest.mark.usefixtures("shelves_on_cluster")]  # type: ignore[no-redef]

"""What `tests/properties/test_explanation.py` proves, of an index in OpenSearch."""

import pytest

from tests.properties.test_explanation import *  # noqa: F403 - its tests and fixtures

pytestmark: object = [pytest.mark.only("sqlite"), pytest.mark.usefixtures("shelves_on_cluster")]

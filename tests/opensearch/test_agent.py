"""What `tests/properties/test_agent.py` proves, of an index in OpenSearch."""

import pytest

from tests.properties.test_agent import *  # noqa: F403 - its tests and fixtures

pytestmark: object = [pytest.mark.only("sqlite"), pytest.mark.usefixtures("shelves_on_cluster")]

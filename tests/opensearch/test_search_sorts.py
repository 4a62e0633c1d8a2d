"""What `tests/contract/test_search_sorts.py` proves, of an index in OpenSearch."""

import pytest

from tests.contract.test_search_sorts import *  # noqa: F403 - its tests and fixtures

del test_the_index_and_the_database_know_one_order  # noqa: F821 - where a number is the largest, the database orders

pytestmark: object = [pytest.mark.only("sqlite"), pytest.mark.usefixtures("shelves_on_cluster")]  # type: ignore[no-redef]

"""Under the profile `campaign` the laws are part of the campaign, each tried on many more examples."""

from pathlib import Path

import pytest
from hypothesis import settings

from tests.properties.lengths import CAMPAIGN


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the laws before the marker expression chooses."""
    if settings.get_current_profile_name() == CAMPAIGN:
        for item in items:
            if item.path.is_relative_to(Path(__file__).parent):
                item.add_marker("campaign")

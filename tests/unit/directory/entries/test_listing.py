"""A list in which the group of the administrators is found by its name of the field, and by the neutral one nowhere."""

import pytest

from muniment.directory.entries import attributes, editing, entries, listing
from muniment.directory.entries.listing import ListPlace, Which
from muniment.directory.entries.table import ADMINISTRATORS
from muniment.directory.options import DirectoryNames
from muniment.ground.clock import Instant
from tests.office import Office

NAMES = DirectoryNames(administrators_group="otdsadmins")


@pytest.mark.parametrize("limit", [1, 2, 3, 10])
@pytest.mark.parametrize("pattern", ["otds", "otdsadmins", "*ds"])
def test_the_administrators_come_once_and_no_page_is_too_long(
    office: Office, now: Instant, pattern: str, limit: int
) -> None:
    """Also if an attribute meets the filter, by which a later list has the group again."""
    with office.db.begin() as cx:
        root = entries.find_location(cx, NAMES, entries.location(NAMES, entries.administration(cx)))
        others = {f"otdsadmins {number}" for number in range(5)}
        for name in others:
            editing.add_group(cx, root, name, now)
        attributes.add(cx, NAMES, entries.administrators(cx), {"displayName": ["otdsadmins of the field"]})
        found: list[str] = []
        after: ListPlace | None = None
        while True:
            page = listing.page_by_shown_names(cx, NAMES, Which("group", pattern=pattern), after, limit)
            assert len(page.entries) <= limit
            found += [each.name for each in page.entries]
            if page.next is None:
                break
            after = page.next
    assert found[0] == ADMINISTRATORS
    assert sorted(found[1:]) == sorted(others)

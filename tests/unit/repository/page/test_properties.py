"""Every property that is known has a heading for people."""

from muniment.repository.page.properties import HEADINGS, HIDDEN
from muniment.repository.store.objects.types.object_types import BUILT_IN


def test_every_built_in_property_has_a_heading_or_is_hidden() -> None:
    known = [definition.name for built_in in BUILT_IN for definition in built_in.properties]
    assert {*HEADINGS, *HIDDEN} == set(known)
    assert not [heading for heading in HEADINGS.values() if "_" in heading]
    assert len(set(HEADINGS.values())) == len(HEADINGS)

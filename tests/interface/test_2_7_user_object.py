"""given 2.7: the user object in a token verification response."""

from typing import Any

import pytest

from muniment.directory.entries import attributes
from tests.scenes import Person, Site

FLAGS = (
    "accountDisabled",
    "accountLockedOut",
    "passwordNeverExpires",
    "userMustChangePasswordAtNextSignIn",
    "userCannotChangePassword",
)


def user(site: Site, person: Person | None = None) -> dict[str, Any]:
    token = site.issue(person or site.world.reader)["access_token"]
    found: dict[str, Any] = site.tokeninfo(token).json()["user"]
    return found


def values(site: Site, person: Person | None = None) -> dict[str, list[Any]]:
    return {value["name"]: value["values"] for value in user(site, person)["values"]}


def spelled(site: Site, name: str) -> str:
    return site.directory_names.attributes.get(name, name)


def location(site: Site, name: str) -> str:
    names = site.directory_names
    return f"cn={name},ou={names.root_unit},ou={site.world.partition},{names.dn_suffix}"


def test_2_7_the_user_object_has_these_fields(site: Site) -> None:
    assert set(user(site)) == {
        "user_partition_id",
        "name",
        "location",
        "id",
        "description",
        "values",
        "object_class",
        "custom_attributes",
        "url_location",
        "url_id",
    }


def test_2_7_partition_name_and_id(site: Site) -> None:
    found = user(site)
    assert found["user_partition_id"] == site.world.partition
    assert found["name"] == site.world.reader.name
    assert found["id"] == site.world.reader.id == f"{found['name']}@{found['user_partition_id']}"


def test_2_7_location_is_the_distinguished_name_of_the_entry(site: Site) -> None:
    assert user(site)["location"] == location(site, site.world.reader.name)


def test_2_7_description_is_free_text(site: Site) -> None:
    assert isinstance(user(site)["description"], str)


def test_2_7_object_class(site: Site) -> None:
    assert user(site)["object_class"] == site.directory_names.object_class


def test_2_7_custom_attributes_is_null(site: Site) -> None:
    assert user(site)["custom_attributes"] is None


def test_2_7_url_forms_are_of_the_same_form(site: Site) -> None:
    found = user(site)
    assert found["url_id"].replace("%40", "@") == found["id"]
    assert found["url_location"].replace("%2C", ",").replace("%3D", "=") == found["location"]


def test_2_7_values_are_named_lists_of_strings_and_integers(site: Site) -> None:
    for value in user(site)["values"]:
        assert set(value) == {"name", "values"}
        assert isinstance(value["values"], list)
        assert all(type(one) in {str, int} for one in value["values"])


@pytest.mark.parametrize("flag", FLAGS)
def test_2_7_values_hold_the_account_flags(site: Site, flag: str) -> None:
    assert values(site)[spelled(site, flag)] == ["false"]


def test_2_7_values_hold_the_membership_direct_and_nested_as_distinguished_names(site: Site) -> None:
    found = values(site, site.world.writer)[spelled(site, "memberOf")]
    assert sorted(found) == [location(site, "everyone"), location(site, "writers")]


def test_2_7_each_group_has_an_identity_beside_its_name_that_a_group_made_again_does_not_get(site: Site) -> None:
    """failures C8"""
    world, group = site.world, f"again-{next(site.world.numbers)}"
    world.group(group)
    person = world.person(group, "everyone")
    first = values(site, person)
    locations, identities = first[spelled(site, "memberOf")], first[spelled(site, "memberOfUUID")]
    assert len(locations) == len(identities) == len(set(identities)) == 2
    before = dict(zip(locations, identities, strict=True))
    world.remove_group(group)
    world.group(group, person)
    found = values(site, person)
    after = dict(zip(found[spelled(site, "memberOf")], found[spelled(site, "memberOfUUID")], strict=True))
    again = location(site, group)
    assert after.keys() == before.keys()
    assert after[again] != before[again]
    assert {name: after[name] for name in after if name != again} == {n: before[n] for n in before if n != again}


def test_2_7_values_hold_common_name_surname_entry_dn_and_domain(site: Site) -> None:
    person = site.world.person()
    with site.world.directory_db.begin() as cx:
        attributes.put(cx, site.directory_names, site.world.entry(person), {"sn": ["Quill"]}, site.world.clock())
    found = values(site, person)
    assert found[spelled(site, "cn")] == [person.name]
    assert found[spelled(site, "sn")] == ["Quill"]
    assert found[spelled(site, "entryDN")] == [location(site, person.name)]
    assert found[spelled(site, "domainName")] == [site.world.partition]


def test_2_7_values_hold_the_external_ids(site: Site) -> None:
    found = values(site)
    assert found[spelled(site, "externalID1")] == [site.world.reader.name]
    assert found[spelled(site, "externalID2")] == [site.world.reader.id]
    for name in ("externalID3", "externalID4"):
        assert len(found[spelled(site, name)]) == 1

"""The built-in group of the administrators has a name of the field (decision 0114): shown, accepted and kept free."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from muniment.directory.administration import decisions
from muniment.directory.entries import entries, resources
from muniment.directory.refusals import NameTaken
from muniment.ground.naming import fold_name
from tests.interface.by_rest import Rest
from tests.scenes import Loop, Site, World

GROUP = "otdsadmins"


@pytest.fixture(scope="module")
def field(world: World, loop: Loop) -> Iterator[Rest]:
    with closing(Site(world, "field", loop)) as site:
        yield Rest(site)


def id_of(rest: Rest, name: str = GROUP) -> str:
    return f"{name}@{rest.site.directory_names.administration_partition}"


def test_it_is_shown_and_accepted_by_its_name(field: Rest) -> None:
    names = field.site.directory_names
    location = f"cn={GROUP},ou=Root,ou={names.administration_partition},{names.dn_suffix}"
    for spelled in (id_of(field), id_of(field, GROUP.upper()), GROUP, location):
        shown = field.done("GET", f"/groups/{spelled}")
        assert (shown["name"], shown["id"], shown["location"]) == (GROUP, id_of(field), location)
        assert shown["uuid"] == field.done("GET", f"/groups/{id_of(field, 'administrators')}")["uuid"]


@pytest.mark.parametrize(
    ("asked", "found"), [("otds", True), (GROUP, True), ("o*admin", True), ("*min", True), ("otdsx", False), ("", True)]
)
def test_lists_find_it_by_its_name(field: Rest, asked: str, found: bool) -> None:
    partition = field.site.directory_names.administration_partition
    listed = field.listed("/groups", "groups", where_filter=asked, where_partition_name=partition)
    assert listed.count(id_of(field)) == found
    elsewhere = field.listed("/groups", "groups", where_filter=GROUP, where_partition_name=field.site.world.partition)
    assert elsewhere == []


def test_who_is_in_it_administers_and_tokens_name_it(field: Rest) -> None:
    site = field.site
    person = site.world.person()
    field.done("POST", f"/users/{person.id}/memberof", {"stringList": [id_of(field)]})
    shown = site.tokeninfo(site.issue(person)["access_token"]).json()
    values = {each["name"]: each["values"] for each in shown["user"]["values"]}
    assert any(value.startswith(f"cn={GROUP},") for value in values[site.directory_names.attributes["memberOf"]])
    assert site.installation.settings.repository.administrators == (id_of(field),)
    token = site.ask_token(person, scope=site.administration_scope).json()["access_token"]
    assert field.done("GET", "/currentuser", headers={"Authorization": f"Bearer {token}"})["isAdmin"] is True
    # The repository's own administrators are its members.
    made = site.create("somebody else's", person=site.world.writer)
    read = site.http.get(f"{site.repository}/objects/{made}", headers=site.bearer(person))
    assert read.status_code == 200, read.text


def test_a_repository_shows_it_by_its_name(field: Rest) -> None:
    site, world = field.site, field.site.world
    with world.directory_db.begin() as cx:
        resources.add_to_role(cx, resources.by_id(cx, world.resource_id), entries.administrators(cx))
    try:
        shown = site.http.get(f"{site.repository}/groups/{id_of(field)}", headers=site.bearer())
        properties = shown.json()["properties"]
        assert (properties["group_name"], properties["group_display_name"]) == (id_of(field), GROUP)
        chosen = {"filter": f"group_name='{id_of(field)}'"}
        listed = site.http.get(f"{site.repository}/groups", params=chosen, headers=site.bearer())
        assert [entry["title"] for entry in listed.json()["entries"]] == [id_of(field)]
    finally:  # The world is shared, and others see how an administrator loses this right.
        with world.directory_db.begin() as cx:
            resources.remove_from_role(cx, resources.by_id(cx, world.resource_id), entries.administrators(cx))


@pytest.mark.parametrize("kind", ["group", "user", "role"])
def test_nobody_else_gets_its_name(field: Rest, kind: str) -> None:
    partition = field.site.directory_names.administration_partition
    body: dict[str, Any] = {"userPartitionID": partition, "name": GROUP.upper()}
    assert field("POST", f"/{kind}s", body).status_code == 409
    other = field.done("POST", f"/{kind}s", body | {"name": field.site.world.word()})
    assert field("PUT", f"/{kind}s/{other['id']}", {"name": GROUP}).status_code == 409
    # In any other partition it is a name as any other.
    assert field("POST", f"/{kind}s", body | {"userPartitionID": field.partition()}).status_code == 201


def test_it_keeps_its_name_and_may_be_changed_under_it(field: Rest) -> None:
    assert field("PUT", f"/groups/{id_of(field)}", {"name": GROUP, "description": "ours"}).status_code == 200
    refused = field("PUT", f"/groups/{id_of(field)}", {"name": "bosses"})
    assert refused.status_code in {400, 409}  # a repository may know it
    assert field.done("GET", f"/groups/{id_of(field)}")["name"] == GROUP


def test_a_start_is_refused_while_somebody_else_has_its_name(field: Rest) -> None:
    site, world = field.site, field.site.world
    with world.directory_db.begin() as cx:
        entries.check_administrators(cx, site.directory_names)
        neutral = f"{GROUP}@{world.names.administration_partition}"
        other = decisions.add_group(cx, world.names, neutral, None, world.clock())
        try:
            with pytest.raises(NameTaken) as refused:
                entries.check_administrators(cx, site.directory_names)
            entries.check_administrators(cx, world.names)
        finally:
            decisions.remove(cx, other, world.clock())
    assert "--set directory.names.administrators_group=administrators group rename" in refused.value.sentence
    assert fold_name(GROUP) in refused.value.sentence

"""ours 4: entries that are put on an object directly, default ACLs of folders, and what an accessor may do."""

from typing import Any

import httpx
import lxml.etree
import pytest

from muniment.repository.store.objects.listing import object_acls
from muniment.repository.store.permissions.table import acls
from tests.scenes import Person, Site, fulltext

JSON = {"Accept": "application/json"}


class Desk:
    """Documents of the writer, and what others may do with them."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.cabinet = site.cabinet(f"cabinet {site.world.word()}")

    def make(self, name: str = "paper", **properties: Any) -> str:
        site = self.site
        made = site.http.post(
            f"{site.repository}/folders/{self.cabinet}/documents",
            json={"properties": {"object_name": name, **properties}},
            headers=site.bearer(),
        )
        assert made.status_code == 201, made.text
        object_id: str = made.json()["properties"]["r_object_id"]
        return object_id

    def ask(self, method: str, path: str, json: Any = None, person: Person | None = None) -> httpx.Response:
        site = self.site
        return site.http.request(method, f"{site.repository}/{path}", json=json, headers=site.bearer(person) | JSON)

    def permit(self, object_id: str, *entries: tuple[str, str], person: Person | None = None) -> dict[str, Any]:
        answer = self.ask("PUT", f"objects/{object_id}/permission-set", {"permitted": permitted(*entries)}, person)
        assert answer.status_code == 200, answer.text
        shown: dict[str, Any] = answer.json()
        return shown

    def acl_of(self, object_id: str) -> int:
        """The key of the ACL that an object carries in the database."""
        world = self.site.world
        with world.repository_db.read() as cx:
            row = cx.exec_driver_sql(f"SELECT acl_id FROM objects WHERE id = '{object_id}'").one()
        return int(row[0])


def permitted(*entries: tuple[str, str]) -> list[dict[str, str]]:
    return [{"accessor": accessor, "basic-permission": level} for accessor, level in entries]


@pytest.fixture(scope="module")
def desk(site: Site) -> Desk:
    return Desk(site)


def test_ours_4_entries_are_put_on_an_object_without_an_acl_of_a_name(desk: Desk) -> None:
    reader, world = desk.site.world.reader, desk.site.type("world")
    object_id = desk.make()
    assert desk.ask("GET", f"objects/{object_id}", person=reader).status_code == 404
    shown = desk.permit(object_id, (reader.id, "Read"), (world, "None"))
    assert (shown["acl-name"], shown["basic-permission"]) == (object_id, "Read")
    assert sorted(entry["accessor"] for entry in shown["permitted"]) == sorted([reader.id, world])
    read = desk.ask("GET", f"objects/{object_id}", person=reader)
    assert (read.status_code, read.json()["properties"]["acl_name"]) == (200, object_id)
    desk.permit(object_id)
    assert desk.ask("GET", f"objects/{object_id}", person=reader).status_code == 404


def test_ours_4_equal_sets_share_one_acl_and_nobody_can_tell(desk: Desk) -> None:
    reader = desk.site.world.reader
    first, second, third = desk.make(), desk.make(), desk.make()
    shown = [desk.permit(one, (reader.id, "Read")) for one in (first, second)]
    desk.permit(third, (reader.id, "Browse"))
    assert desk.acl_of(first) == desk.acl_of(second) != desk.acl_of(third)
    assert [one["acl-name"] for one in shown] == [first, second]
    listed = desk.ask("GET", "acls?items-per-page=1000").json()["entries"]
    assert all(len(entry["title"]) < 64 for entry in listed)
    administrator = desk.site.http.get(
        f"{desk.site.repository}/acls", params={"items-per-page": "1000"}, headers=desk.site.bearer() | JSON
    )
    assert first not in administrator.text
    # A change of one leaves the other as it is.
    desk.permit(first, (reader.id, "Write"))
    assert desk.acl_of(first) != desk.acl_of(second)
    assert desk.ask("GET", f"objects/{second}/permissions?accessor={reader.id}").json()["basic-permission"] == "Read"


def test_ours_4_a_search_by_the_name_of_an_unnamed_set_tells_of_no_other_object(desk: Desk) -> None:
    site, reader, word = desk.site, desk.site.world.reader, desk.site.world.word()
    first, second = desk.make(title=word), desk.make(title=word)
    for one in (first, second):
        desk.permit(one, (reader.id, "Read"))
    site.world.catch_up()
    for text in (first, second):
        named = f'<property name="acl_name" operator="EQUAL">{text}</property>'
        assert site.search(fulltext(word), named, person=reader).ids == []
    assert set(site.search(fulltext(word), person=reader).ids) == {first, second}


def test_ours_4_what_is_sent_back_changes_nothing_and_other_entries_count(desk: Desk) -> None:
    reader = desk.site.world.reader
    object_id, owner = desk.make(), desk.site.type("owner")
    whole = desk.permit(object_id, (reader.id, "Read"), (owner, "Write"))
    before = desk.acl_of(object_id)
    assert desk.ask("PUT", f"objects/{object_id}/permission-set", whole).status_code == 200
    assert desk.ask("POST", f"documents/{object_id}", {"properties": {"acl_name": object_id}}).status_code == 200
    assert desk.acl_of(object_id) == before
    whole["permitted"] = permitted((reader.id, "Write"))
    answer = desk.ask("PUT", f"objects/{object_id}/permission-set", whole)
    assert answer.json()["permitted"] == permitted((reader.id, "Write"))
    assert desk.acl_of(object_id) != before
    named = desk.ask("PUT", f"objects/{object_id}/permission-set", {**whole, "acl-name": "public"}).json()
    assert named["acl-name"] == "public"


def test_ours_4_the_id_of_ones_own_object_names_its_acl(desk: Desk) -> None:
    reader = desk.site.world.reader
    first, second = desk.make(), desk.make()
    desk.permit(first, (reader.id, "Read"))
    answer = desk.ask("PUT", f"objects/{second}/permission-set", {"acl-name": first})
    assert answer.json()["acl-name"] == second
    assert desk.acl_of(first) == desk.acl_of(second)
    desk.permit(first, (reader.id, "Delete"))
    mine = desk.ask("POST", "objects", {"properties": {"object_name": "mine"}}, reader).json()
    stolen = desk.ask("PUT", f"objects/{mine['properties']['r_object_id']}/permission-set", {"acl-name": first}, reader)
    assert (stolen.status_code, stolen.json()["code"]) == (400, "E_UNKNOWN_ACL")


def test_ours_4_only_the_owner_and_administrators_put_entries_on_an_object(desk: Desk) -> None:
    reader = desk.site.world.reader
    object_id = desk.make()
    desk.permit(object_id, (reader.id, "Delete"))
    answer = desk.ask("PUT", f"objects/{object_id}/permission-set", {"permitted": []}, reader)
    assert answer.status_code == 403
    for body, code in (
        ({}, "E_INVALID_ATTR_VALUE"),
        ({"permitted": permitted((reader.id, "Much"))}, "E_INVALID_ATTR_VALUE"),
        ({"permitted": permitted(("nobody", "Read"))}, "E_UNKNOWN_ACCESSOR"),
        ({"permitted": permitted((reader.id, "Read"), (reader.id.upper(), "Write"))}, "E_INVALID_ATTR_VALUE"),
        ({"permitted": permitted(*((f"u{n}@demo", "Read") for n in range(1001)))}, "E_INVALID_ATTR_VALUE"),
    ):
        answer = desk.ask("PUT", f"objects/{object_id}/permission-set", body)
        assert (answer.status_code, answer.json()["code"]) == (400, code), answer.text


def test_ours_4_an_unnamed_set_that_nothing_carries_is_removed(desk: Desk) -> None:
    world = desk.site.world
    object_id = desk.make()
    desk.permit(object_id, (world.reader.id, "Relate"))
    unused = desk.acl_of(object_id)
    with world.repository_db.begin() as cx:
        object_acls.remove_unused(cx)
    assert desk.acl_of(object_id) == unused
    desk.permit(object_id, (world.reader.id, "Version"))
    with world.repository_db.begin() as cx:
        assert object_acls.remove_unused(cx) >= 1
        assert cx.execute(acls.select().where(acls.c.id == unused)).first() is None
    assert desk.ask("GET", f"objects/{object_id}", person=world.reader).status_code == 200


def test_ours_4_new_objects_in_a_folder_get_its_default(desk: Desk) -> None:
    site, reader = desk.site, desk.site.world.reader
    desk.cabinet = site.cabinet(f"cabinet {site.world.word()}")
    path = f"folders/{desk.cabinet}/default-permission-set"
    links = desk.ask("GET", f"cabinets/{desk.cabinet}").json()["links"]
    own = f"{site.names.own_linkrel_base}/default-permission-set"
    assert [link["href"] for link in links if link["rel"] == own] == [f"{site.base}{site.repository}/{path}"]
    before = desk.make()
    assert desk.ask("GET", path).json()["acl-name"] == "private"
    assert desk.ask("PUT", path, {"acl-name": "public"}).json()["acl-name"] == "public"
    assert desk.ask("GET", f"objects/{desk.make()}", person=reader).status_code == 200
    assert desk.ask("GET", f"objects/{before}", person=reader).status_code == 404
    assert desk.ask("GET", f"cabinets/{desk.cabinet}", person=reader).status_code == 404
    inner = desk.ask("POST", f"folders/{desk.cabinet}/folders", {"properties": {"object_name": "inner"}}).json()
    inner_id = inner["properties"]["r_object_id"]
    assert desk.ask("GET", f"folders/{inner_id}/default-permission-set").json()["acl-name"] == "public"
    shown = desk.ask("PUT", path, {"permitted": permitted((reader.id, "Write"))}).json()
    assert (shown["acl-name"], shown["permitted"]) == ("", permitted((reader.id, "Write")))
    assert desk.ask("POST", f"documents/{desk.make()}", {"properties": {"title": "x"}}, reader).status_code == 200
    assert desk.ask("PUT", path, shown | {"acl-name": "public"}).json()["acl-name"] == "public"
    again = desk.ask("PUT", path, {"acl-name": "public", "permitted": permitted((reader.id, "Write"))}).json()
    assert (again["acl-name"], again["permitted"]) == ("", permitted((reader.id, "Write")))
    assert desk.ask("PUT", path, {"acl-name": "public"}, reader).status_code == 404
    assert desk.ask("DELETE", path).status_code == 204
    assert desk.ask("GET", f"objects/{desk.make()}", person=reader).status_code == 404


def test_ours_4_an_acl_that_new_objects_get_cannot_be_removed(desk: Desk) -> None:
    name = f"team {desk.site.world.word()}"
    assert desk.ask("POST", "acls", {"name": name}).status_code == 201
    path = f"folders/{desk.cabinet}/default-permission-set"
    assert desk.ask("PUT", path, {"acl-name": name}).status_code == 200
    assert desk.ask("DELETE", f"acls/{name}").status_code == 409
    assert desk.ask("DELETE", path).status_code == 204
    assert desk.ask("DELETE", f"acls/{name}").status_code == 204


def test_ours_4_permissions_say_what_an_accessor_may_do(desk: Desk) -> None:
    site, world = desk.site, desk.site.world
    object_id = desk.make()
    desk.permit(object_id, ("writers@demo", "Version"), (world.reader.id, "Browse"), (site.type("world"), "Browse"))

    def level(accessor: str = "", person: Person | None = None) -> Any:
        query = f"?accessor={accessor}" if accessor else ""
        answer = desk.ask("GET", f"objects/{object_id}/permissions{query}", person=person)
        return answer.json().get("basic-permission", answer.json().get("code"))

    assert level() == "Version"
    assert level(world.reader.id) == "Browse"
    assert level("writers@demo") == "Version"
    assert level(site.type("world")) == "Browse"
    assert level(world.outsider.id) == "E_UNKNOWN_PERSON"
    assert level(person=world.reader) == "Browse"
    assert level(world.writer.id, person=world.reader) == "E_NOT_PERMITTED"
    answer = desk.ask("GET", f"objects/{object_id}/permissions?accessor={world.reader.id}").json()
    again = next(link["href"] for link in answer["links"] if link["rel"] == "self")
    assert site.http.get(again, headers=site.bearer()).json() == answer
    links = desk.ask("GET", f"documents/{object_id}").json()["links"]
    assert f"{site.names.linkrel_base}/permissions" in {link["rel"] for link in links}
    xml = site.http.get(
        f"{site.repository}/objects/{object_id}/permissions", headers=site.bearer() | {"Accept": "application/xml"}
    )
    root = lxml.etree.fromstring(xml.content)
    assert root.findtext(f"{site.vocab}basic-permission") == "Version"

"""Ours 18: what was deleted can be restored for some days, where the settings say so. Source: docs/interface.md."""

from collections.abc import Iterator

import pytest

from muniment.installation import backends
from muniment.repository.search.agent import agent
from muniment.repository.store.objects import inventory
from muniment.repository.store.objects.contents import stored_contents, usage
from tests.contents import counted_rows, counted_uses
from tests.interface.test_ours_2_folders import Folders
from tests.scenes import Loop, Person, Site, World

DAYS = 30
DAY = 86_400.0


@pytest.fixture(scope="module")
def site(world: World, loop: Loop) -> Iterator[Site]:
    site = Site(world, "neutral", loop, f"repository.wastebasket_days={DAYS}")
    yield site
    site.close()


@pytest.fixture
def person(site: Site) -> Person:
    return site.world.person()


@pytest.fixture
def folders(site: Site, person: Person) -> Folders:
    return Folders(site, person)


def counts_are_right(world: World) -> None:
    with world.repository_db.read() as cx:
        assert usage.usage_by_owner(cx) == inventory.amounts_by_owner(cx)
        assert counted_rows(cx) == counted_uses(cx)


def test_ours_18_a_deleted_object_is_restored_as_it_was(folders: Folders, site: Site, person: Person) -> None:
    first, second = folders.folder("first"), folders.folder("second")
    word = site.world.word()
    document = site.create(word, f"{word} words".encode(), person=person)
    assert folders.link(document, first).status_code == folders.link(document, second).status_code == 201
    assert folders.ask("POST", f"/objects/{document}", {"properties": {"keywords": ["k"]}}).status_code == 200
    site.world.catch_up()
    before = folders.properties(document)
    tag = folders.ask("GET", f"/objects/{document}").headers["ETag"]
    assert folders.ask("DELETE", f"/objects/{document}").status_code == 204
    assert folders.ask("GET", f"/objects/{document}").status_code == 404
    assert folders.titles(f"/folders/{first}/objects") == folders.titles(f"/folders/{second}/objects") == []
    assert folders.titles("/search", q=word) == []
    listed = folders.ask("GET", "/wastebasket", inline="true", **{"include-total": "true"}).json()
    assert (listed["total"], [entry["title"] for entry in listed["entries"]]) == (1, [word])
    shown = folders.ask("GET", f"/wastebasket/{document}").json()
    assert listed["entries"][0]["content"] == shown
    assert (shown["deleter"], shown["properties"]["i_folder_id"]) == (person.id, [first, second])
    counts_are_right(site.world)
    restore = next(link["href"] for link in shown["links"] if link["rel"].endswith("/restore"))
    restored = site.http.post(restore, json={}, headers=site.bearer(person))
    assert restored.status_code == 201, restored.text
    after = folders.properties(document)
    changed = {"r_modify_date", "r_index_status"}
    assert {name: after[name] for name in after.keys() - changed} == {
        name: before[name] for name in before.keys() - changed
    }
    assert folders.titles(f"/folders/{second}/objects") == [word]
    stale = folders.ask("POST", f"/objects/{document}", {"properties": {"title": "x"}}, headers={"If-Match": tag})
    assert stale.status_code == 412
    site.world.catch_up()
    assert folders.titles("/search", q=word) == [word]
    media = f"{site.repository}/objects/{document}/content-media"
    assert site.http.get(media, headers=site.bearer(person)).content == f"{word} words".encode()
    assert folders.titles("/wastebasket") == []
    assert site.http.post(restore, json={}, headers=site.bearer(person)).status_code == 404


def test_ours_18_a_tree_goes_and_comes_back_whole(folders: Folders) -> None:
    outer = folders.folder("outer")
    inner, beside = folders.folder("inner", outer), folders.folder("beside", outer)
    deep = folders.document("deep", inner)
    assert folders.link(deep, beside).status_code == folders.link(beside, inner).status_code == 201
    assert folders.ask("DELETE", f"/folders/{outer}", **{"del-non-empty": "true"}).status_code == 204
    assert folders.titles("/wastebasket") == ["outer"]
    counts_are_right(folders.site.world)
    assert folders.ask("POST", f"/wastebasket/{outer}/restore", {}).status_code == 201
    assert folders.titles(f"/folders/{inner}/objects") == ["beside", "deep"]
    assert folders.properties(deep)["i_folder_id"] == [inner, beside]
    assert folders.ask("DELETE", f"/folders/{outer}", **{"del-non-empty": "true"}).status_code == 204
    assert folders.ask("DELETE", f"/wastebasket/{outer}").status_code == 204
    assert folders.titles("/wastebasket") == []
    assert folders.ask("POST", f"/wastebasket/{outer}/restore", {}).status_code == 404
    counts_are_right(folders.site.world)


def test_ours_18_an_object_whose_folder_is_gone_needs_another(folders: Folders, site: Site) -> None:
    folder, other = folders.folder("gone"), folders.folder("other")
    document = folders.document("lost", folder)
    assert folders.ask("DELETE", f"/objects/{document}").status_code == 204
    assert folders.ask("DELETE", f"/folders/{folder}").status_code == 204
    refused = folders.ask("POST", f"/wastebasket/{document}/restore", {})
    assert (refused.status_code, refused.json()["code"]) == (400, "E_INVALID_ATTR_VALUE")
    foreign = Folders(site, site.world.person())
    hidden = folders.ask("POST", f"/wastebasket/{document}/restore", folders.to(foreign.cabinet))
    assert hidden.status_code == 404
    wrong: list[tuple[object, int]] = [({"properties": {"title": "x"}}, 400), ({"href": "nonsense"}, 400), ([], 400)]
    for body, status in wrong:
        assert folders.ask("POST", f"/wastebasket/{document}/restore", body).status_code == status
    restored = folders.ask("POST", f"/wastebasket/{document}/restore", folders.to(other))
    assert restored.status_code == 201
    assert restored.json()["properties"]["i_folder_id"] == [other]
    cabinet = folders.make("/cabinets", "a cabinet")
    assert folders.ask("DELETE", f"/cabinets/{cabinet}").status_code == 204
    assert folders.ask("POST", f"/wastebasket/{cabinet}/restore", {}).status_code == 201
    assert folders.ask("GET", f"/cabinets/{cabinet}").status_code == 200


def test_ours_18_nobody_sees_what_others_deleted(folders: Folders, site: Site) -> None:
    another = site.world.person()
    owner, deleter, stranger = folders, Folders(site, another), Folders(site, site.world.person())
    name = site.world.word()
    entries = [
        {"accessor": "owner", "basic-permission": "Delete"},
        {"accessor": another.id, "basic-permission": "Delete"},
    ]
    acl = owner.ask("POST", "/acls", {"name": name, "permitted": entries})
    assert acl.status_code == 201, acl.text
    document = owner.make(f"/folders/{owner.cabinet}/documents", "shared", acl_name=name)
    assert deleter.ask("DELETE", f"/objects/{document}").status_code == 204
    assert deleter.titles("/wastebasket") == owner.titles("/wastebasket") == ["shared"]
    assert stranger.titles("/wastebasket") == []
    asked: list[tuple[str, str, object]] = [("GET", "", None), ("DELETE", "", None), ("POST", "/restore", {})]
    for method, address, body in asked:
        refused = stranger.ask(method, f"/wastebasket/{document}{address}", body)
        assert (refused.status_code, refused.json()["code"]) == (404, "E_UNKNOWN_OBJECT")
    less = [{"accessor": "owner", "basic-permission": "Delete"}]
    changed = owner.ask("POST", f"/acls/{name}", {"permitted": less})
    assert changed.status_code == 200, changed.text
    assert deleter.titles("/wastebasket") == []
    assert deleter.ask("POST", f"/wastebasket/{document}/restore", {}).status_code == 404
    assert owner.ask("DELETE", f"/acls/{name}").status_code == 204, "the wastebasket keeps no ACL"
    restored = owner.ask("POST", f"/wastebasket/{document}/restore", {})
    assert restored.status_code == 201
    assert restored.json()["properties"]["acl_name"] == "private"


def test_ours_18_an_owner_sees_their_objects_when_the_folder_that_they_deleted_is_hidden(
    folders: Folders, site: Site
) -> None:
    another = site.world.person()
    owner, deleter, name = folders, Folders(site, another), site.world.word()
    less = [{"accessor": "owner", "basic-permission": "Delete"}]
    more = [*less, {"accessor": another.id, "basic-permission": "Delete"}]
    assert owner.ask("POST", "/acls", {"name": name, "permitted": more}).status_code == 201
    folder = owner.make(f"/folders/{owner.cabinet}/folders", "folder", acl_name=name)
    owner.document("foreign", folder)
    document = deleter.document("own", folder)
    assert deleter.ask("DELETE", f"/folders/{folder}", **{"del-non-empty": "true"}).status_code == 204

    def seen() -> list[str]:
        listed = deleter.ask("GET", "/wastebasket", **{"include-total": "true"}).json()
        titles = [entry["title"] for entry in listed["entries"]]
        assert listed["total"] == len(titles)
        for title, object_id in (("folder", folder), ("own", document)):
            shown = deleter.ask("GET", f"/wastebasket/{object_id}")
            assert shown.status_code == (200 if title in titles else 404)
        return titles

    assert seen() == ["folder"]
    assert owner.ask("POST", f"/acls/{name}", {"permitted": less}).status_code == 200
    assert seen() == ["own"]
    assert owner.ask("POST", f"/acls/{name}", {"permitted": more}).status_code == 200
    assert seen() == ["folder"]
    assert owner.ask("DELETE", f"/acls/{name}").status_code == 204
    assert seen() == ["own"]
    restored = deleter.ask("POST", f"/wastebasket/{document}/restore", deleter.to(deleter.cabinet))
    assert restored.status_code == 201, restored.text
    assert seen() == []
    assert owner.titles("/wastebasket") == ["foreign", "folder"]
    assert owner.ask("POST", f"/wastebasket/{folder}/restore", {}).status_code == 201
    assert owner.titles(f"/folders/{folder}/objects") == ["foreign"]


def test_ours_18_what_was_kept_long_enough_is_gone(folders: Folders, site: Site, person: Person) -> None:
    world = site.world
    document = site.create("old", b"old words", person=person)
    assert folders.ask("DELETE", f"/objects/{document}").status_code == 204
    store = backends.content(site.installation)
    database = world.repository_db
    with database.read() as cx:
        before = stored_contents.amount(cx).objects
    assert sum(agent._sweep(database, store, world.clock() + 10**12)) == 0
    with world.clock.shift(DAYS * DAY + 1):
        site.forget(person)
        assert folders.titles("/wastebasket") == []
        assert folders.ask("POST", f"/wastebasket/{document}/restore", {}).status_code == 404
        assert sum(agent._purge(database, store, world.clock())) >= 1
    with database.read() as cx:
        assert stored_contents.amount(cx).objects < before
        assert counted_rows(cx) == counted_uses(cx)
    counts_are_right(world)


def test_ours_18_every_content_is_kept_and_comes_back(folders: Folders, site: Site, person: Person) -> None:
    words = site.world.word().encode()
    document, twin = (site.create(name, words, person=person) for name in ("first", "twin"))
    headers = site.bearer(person) | {"Content-Type": "text/html"}
    address = f"{site.repository}/objects/{document}/contents"
    added = site.http.post(address, params={"primary": "false"}, content=b"<p>" + words, headers=headers)
    assert added.status_code == 201, added.text
    assert folders.ask("DELETE", f"/objects/{document}").status_code == 204
    assert folders.ask("DELETE", f"/objects/{twin}").status_code == 204
    counts_are_right(site.world)
    store = backends.content(site.installation)
    assert sum(agent._sweep(site.world.repository_db, store, site.world.clock() + 10**15)) == 0
    assert folders.ask("DELETE", f"/wastebasket/{twin}").status_code == 204
    counts_are_right(site.world)
    assert folders.ask("POST", f"/wastebasket/{document}/restore", {}).status_code == 201
    counts_are_right(site.world)
    for path, expected in (("", words), ("?format=text/html", b"<p>" + words)):
        media = site.http.get(f"{site.repository}/objects/{document}/content-media{path}", headers=site.bearer(person))
        assert media.content == expected, path


def test_ours_18_versions_lie_in_every_folder_and_come_back_as_a_tree(folders: Folders) -> None:
    first, second = folders.folder("first"), folders.folder("second")
    document = folders.document("versioned", first)
    assert folders.link(document, second).status_code == 201
    assert folders.ask("PUT", f"/objects/{document}/lock").status_code == 200
    made = folders.ask("POST", f"/objects/{document}/versions", {"properties": {"object_name": "newer"}})
    assert made.status_code == 201, made.text
    newer = made.json()["properties"]["r_object_id"]
    assert made.json()["properties"]["i_folder_id"] == [first, second]
    for folder in (first, second):
        assert folders.titles(f"/folders/{folder}/documents") == ["newer"]
        every = folders.titles(f"/folders/{folder}/documents", **{"include-all-versions": "true"})
        assert every == ["newer", "versioned"]
    path = f"/{folders.word}/second/newer"
    assert folders.at(path).json()["properties"]["r_object_id"] == newer
    assert folders.at(f"/{folders.word}/second/versioned").status_code == 404
    assert folders.ask("DELETE", f"/objects/{newer}", **{"del-version": "all"}).status_code == 204
    assert folders.titles(f"/folders/{second}/documents") == []
    assert folders.titles("/wastebasket") == ["newer"]
    assert folders.ask("POST", f"/wastebasket/{newer}/restore", {}).status_code == 201
    assert folders.titles(f"/folders/{second}/documents") == ["newer"]
    assert folders.titles(f"/objects/{newer}/versions") == ["newer", "versioned"]
    assert folders.properties(newer)["r_version_label"] == ["1.1", "CURRENT"]
    assert folders.ask("DELETE", f"/objects/{newer}").status_code == 204
    assert folders.titles(f"/folders/{second}/documents") == ["versioned"]
    assert folders.ask("POST", f"/wastebasket/{newer}/restore", {}).status_code == 201
    assert folders.properties(newer)["r_version_label"] == ["1.0", "CURRENT"], "its tree lives, so it begins its own"
    assert folders.titles(f"/folders/{second}/documents") == ["newer", "versioned"]

"""Ours 2: objects in several folders, paths, copies of folders, names that are unique. Source: docs/interface.md."""

import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.interface import test_ours_17_versions as versions
from tests.scenes import Loop, Person, Site, World

ODD_NAMES = ["a/b", "a\\b", "a\\/b", "end\\", "\\\\", "Ä\u0301\U0001f600", " spaced ", "..", ".", "line\nbreak", "\x7f"]


class Folders:
    """A cabinet, and shorthands for what a test asks of the folders in it."""

    def __init__(self, site: Site, person: Person | None = None) -> None:
        self.site, self.person = site, person
        self.word = site.world.word()
        self.cabinet = self.make("/cabinets", self.word)

    def ask(self, method: str, address: str, body: object = None, /, **options: Any) -> httpx.Response:
        person = options.pop("person", self.person)
        headers = self.site.bearer(person) | options.pop("headers", {"Accept": "application/json"})
        return self.site.http.request(
            method, f"{self.site.repository}{address}", json=body, headers=headers, params=options or None
        )

    def make(self, path: str, name: str, **properties: object) -> str:
        made = self.ask("POST", path, {"properties": {"object_name": name, **properties}})
        assert made.status_code == 201, made.text
        return str(made.json()["properties"]["r_object_id"])

    def folder(self, name: str, parent: str = "") -> str:
        return self.make(f"/folders/{parent or self.cabinet}/folders", name)

    def document(self, name: str, parent: str = "") -> str:
        return self.make(f"/folders/{parent or self.cabinet}/documents", name)

    def to(self, object_id: str) -> dict[str, str]:
        return {"href": f"{self.site.base}{self.site.repository}/objects/{object_id}"}

    def link(self, object_id: str, folder: str) -> httpx.Response:
        return self.ask("POST", f"/objects/{object_id}/parent-links", self.to(folder))

    def properties(self, object_id: str) -> dict[str, Any]:
        shown = self.ask("GET", f"/objects/{object_id}")
        assert shown.status_code == 200, shown.text
        properties: dict[str, Any] = shown.json()["properties"]
        return properties

    def titles(self, path: str, **parameters: Any) -> list[str]:
        listed = self.ask("GET", path, **parameters)
        assert listed.status_code == 200, listed.text
        return [entry["title"] for entry in listed.json()["entries"]]

    def at(self, path: str, **options: Any) -> httpx.Response:
        return self.ask("GET", "/object-by-path", path=path, **options)


@pytest.fixture(scope="module")
def site(world: World, loop: Loop) -> Iterator[Site]:
    site = Site(world, "neutral", loop)
    yield site
    site.close()


@pytest.fixture
def folders(site: Site) -> Folders:
    return Folders(site)


def test_ours_2_an_object_lies_in_several_folders(folders: Folders) -> None:
    first, second, third = (folders.folder(name) for name in ("f1", "f2", "f3"))
    document = folders.document("shared", first)
    for number, folder in enumerate((second, third)):
        folders.document(f"before {number}", folder)
        folders.document(f"t after {number}", folder)
        assert folders.link(document, folder).status_code == 201
        assert folders.titles(f"/folders/{folder}/documents") == [f"before {number}", "shared", f"t after {number}"]
        assert folders.titles(f"/folders/{folder}/child-links", filter="object_name='shared'") == ["shared"]
    shown = folders.ask("GET", f"/objects/{document}").json()
    assert shown["properties"]["i_folder_id"] == [first, second, third]
    assert [link["title"] for link in shown["links"] if link["rel"] == "parent"] == [first, second, third]
    links = f"/objects/{document}/parent-links"
    assert folders.titles(links) == [first, second, third]
    page = folders.ask("GET", links, **{"items-per-page": 2, "include-total": "true"}).json()
    assert (len(page["entries"]), page["total"]) == (2, 3)
    following = next(link["href"] for link in page["links"] if link["rel"] == "next")
    rest = folders.site.http.get(following, headers=folders.site.bearer() | {"Accept": "application/json"}).json()
    assert [entry["title"] for entry in rest["entries"]] == [third]
    assert folders.titles(links, filter=f"parent-id='{second}'") == [second]
    assert folders.titles(f"/folders/{second}/objects", filter=f"i_folder_id='{third}'") == ["shared"]
    assert folders.ask("POST", f"/objects/{document}", {"properties": {"object_name": "a new name"}}).status_code == 200
    assert folders.titles(f"/folders/{third}/documents") == ["a new name", "before 1", "t after 1"]
    assert folders.ask("DELETE", f"{links}/{first}").status_code == 204
    assert folders.properties(document)["i_folder_id"] == [second, third]
    moved = folders.ask("PUT", f"{links}/{third}", folders.to(first))
    assert (moved.status_code, moved.json()["parent-id"]) == (200, first)
    assert folders.titles(f"/folders/{third}/documents") == ["before 1", "t after 1"]
    assert folders.ask("DELETE", f"/objects/{document}").status_code == 204
    assert [folders.titles(f"/folders/{each}/documents") for each in (first, second)] == [[], ["before 0", "t after 0"]]


def test_ours_2_a_page_of_both_kinds_of_members_is_walked_in_order(folders: Folders) -> None:
    folder, other = folders.folder("walked"), folders.folder("other")
    names = [f"n{number % 4}" for number in range(12)]
    for number, name in enumerate(names):
        document = folders.document(name, folder if number % 3 else other)
        if not number % 3:
            assert folders.link(document, folder).status_code == 201
    for sort in ({}, {"sort": "object_name desc"}, {"sort": "r_object_id"}):
        whole = folders.ask("GET", f"/folders/{folder}/documents", **sort).json()["entries"]
        walked: list[str] = []
        page = folders.ask("GET", f"/folders/{folder}/documents", **sort, **{"items-per-page": 5}).json()
        while True:
            walked += [entry["id"] for entry in page["entries"]]
            following = [link["href"] for link in page["links"] if link["rel"] == "next"]
            if not following:
                break
            headers = folders.site.bearer() | {"Accept": "application/json"}
            page = folders.site.http.get(following[0], headers=headers).json()
        assert walked == [entry["id"] for entry in whole]
        assert len(set(walked)) == 12
    assert folders.titles(f"/folders/{folder}/documents") == sorted(names)
    assert folders.titles(f"/folders/{folder}/documents", page=2, **{"items-per-page": 7}) == sorted(names)[7:]


def test_ours_2_links_have_an_end_and_never_make_a_circle(folders: Folders) -> None:
    outer = folders.folder("outer")
    inner = folders.folder("inner", outer)
    beside = folders.folder("beside")
    assert folders.link(inner, beside).status_code == 201
    assert folders.link(beside, outer).status_code == 201
    for below in (outer, inner, beside):
        refused = folders.link(outer, below)
        assert (refused.status_code, refused.json()["code"]) == (400, "E_INVALID_ATTR_VALUE"), below
    cabinet = folders.link(folders.cabinet, outer)
    assert cabinet.json()["code"] == "E_INVALID_ATTR_VALUE"
    only = folders.ask("DELETE", f"/objects/{outer}/parent-links/{folders.cabinet}")
    assert only.json()["code"] == "E_INVALID_ATTR_VALUE"
    assert folders.ask("DELETE", f"/objects/{inner}/parent-links/{outer}").status_code == 204
    document = folders.document("everywhere", folders.cabinet)
    statuses = [folders.link(document, folders.folder(f"n{number}")).status_code for number in range(99)]
    assert statuses == [201] * 99
    assert folders.link(document, outer).json()["code"] == "E_INVALID_ATTR_VALUE"


def test_ours_2_two_links_at_one_time_make_no_circle(folders: Folders) -> None:
    for _ in range(4):
        pair = [folders.folder("one"), folders.folder("other")]
        statuses: list[int] = []

        def link(inner: str, outer: str, statuses: list[int] = statuses) -> None:
            statuses.append(folders.link(inner, outer).status_code)

        linkers = [threading.Thread(target=link, args=ends) for ends in (pair, pair[::-1])]
        for linker in linkers:
            linker.start()
        for linker in linkers:
            linker.join()
        assert sorted(statuses) == [201, 400]


def test_ours_2_a_deleted_folder_takes_along_what_lies_in_no_other(folders: Folders) -> None:
    def world() -> tuple[str, str, str, str, str]:
        gone, stays = folders.folder("gone"), folders.folder("stays")
        inner = folders.folder("inner", gone)
        only, shared = folders.document("only", gone), folders.document("shared", gone)
        assert folders.link(shared, stays).status_code == folders.link(only, inner).status_code == 201
        assert folders.link(inner, stays).status_code == 201
        return gone, stays, inner, only, shared

    gone, stays, inner, only, shared = world()
    refused = folders.ask("DELETE", f"/folders/{gone}")
    assert (refused.status_code, refused.json()["code"]) == (409, "E_IN_USE")
    assert folders.ask("DELETE", f"/folders/{gone}", **{"del-non-empty": "true"}).status_code == 204
    assert folders.titles(f"/folders/{stays}/objects") == ["inner", "shared"]
    assert folders.properties(shared)["i_folder_id"] == [stays]
    assert folders.properties(only)["i_folder_id"] == [inner]
    gone, stays, inner, only, shared = world()
    everything = {"del-non-empty": "true", "del-all-links": "true"}
    assert folders.ask("DELETE", f"/folders/{gone}", **everything).status_code == 204
    assert folders.titles(f"/folders/{stays}/objects") == []
    for object_id in (gone, inner, only, shared):
        assert folders.ask("GET", f"/objects/{object_id}").status_code == 404
    wrong = folders.ask("DELETE", f"/folders/{stays}", **{"del-all-links": "maybe"})
    assert wrong.status_code == 400


def test_ours_2_a_folder_shows_its_paths_and_the_folders_above(folders: Folders, site: Site) -> None:
    first, second = folders.folder("a/b"), folders.folder("second")
    inner = folders.folder("inner", first)
    assert folders.link(inner, second).status_code == 201
    shown = folders.properties(inner)
    paths = [f"/{folders.word}/a\\/b/inner", f"/{folders.word}/second/inner"]
    assert sorted(shown["r_folder_path"]) == paths
    assert shown["i_ancestor_id"][0] == inner
    assert set(shown["i_ancestor_id"]) == {inner, first, second, folders.cabinet}
    inline = folders.ask("GET", f"/folders/{second}/folders", inline="true").json()["entries"][0]["content"]
    assert inline["properties"] == shown
    back = folders.ask("POST", f"/folders/{inner}", {"properties": shown})
    assert back.status_code == 200, back.text
    refused = folders.ask("POST", f"/folders/{inner}", {"properties": {"r_folder_path": ["/elsewhere"]}})
    assert refused.json()["code"] == "E_NOT_WRITABLE"
    reader = site.world.person()
    for object_id in (folders.cabinet, first, inner):
        site.share(object_id)
    seen = folders.ask("GET", f"/folders/{inner}", person=reader).json()["properties"]
    assert seen["r_folder_path"] == paths[:1]
    assert set(seen["i_ancestor_id"]) == {inner, first, folders.cabinet}
    assert folders.at(paths[1], person=reader).status_code == 404
    assert folders.at(paths[0], person=reader).json()["properties"]["r_object_id"] == inner


def test_ours_2_an_object_is_found_by_its_path(folders: Folders, site: Site) -> None:
    repository = folders.ask("GET", "").json()
    (template,) = [link["hreftemplate"] for link in repository["links"] if link["rel"].endswith("/object-by-path")]
    assert template == f"{site.base}{site.repository}/object-by-path{{?path}}"
    for name in ODD_NAMES:
        document = folders.document(name)
        folder = folders.folder("in " + name)
        path = folders.properties(folder)["r_folder_path"][0]
        assert folders.at(path).json()["properties"]["r_object_id"] == folder
        written = path.replace("/in ", "/", 1)
        assert folders.at(written).json()["properties"]["r_object_id"] == document, name
    twins = [folders.document("twin"), folders.document("twin")]
    feed = folders.at(f"/{folders.word}/twin", **{"include-total": "true", "items-per-page": 1}).json()
    assert (feed["total"], feed["entries"][0]["title"]) == (2, "twin")
    following = next(link["href"] for link in feed["links"] if link["rel"] == "next")
    second = site.http.get(following, headers=site.bearer() | {"Accept": "application/json"}).json()
    ids = [entry["id"].rpartition("/")[2] for entry in (*feed["entries"], *second["entries"])]
    assert ids == twins
    reader = site.world.person()
    site.share(folders.cabinet)
    assert folders.at(f"/{folders.word}/twin", person=reader).status_code == 404
    site.share(twins[1])
    assert folders.at(f"/{folders.word}/twin", person=reader).json()["properties"]["r_object_id"] == twins[1]
    as_xml = folders.at(f"/{folders.word}", headers={"Accept": "application/xml"})
    assert as_xml.headers["Content-Type"].startswith("application/xml")
    again = folders.at(
        f"/{folders.word}", headers={"If-None-Match": as_xml.headers["ETag"], "Accept": "application/xml"}
    )
    assert again.status_code == 304
    for path, status in (("", 400), ("no/slash", 400), ("/", 404), ("//", 404), ("/\x00", 400), ("/a" * 501, 400)):
        assert folders.at(path).status_code == status, path


def test_ours_2_a_folder_is_copied_with_everything_in_it(folders: Folders, site: Site) -> None:
    source, target = folders.folder("source"), folders.folder("target")
    inner = folders.folder("inner", source)
    deep = folders.document("deep", inner)
    assert folders.link(deep, source).status_code == 201
    text = site.create("with words", b"copied words")
    assert folders.link(text, inner).status_code == 201
    copied = folders.ask("POST", f"/folders/{target}/folders", folders.to(source))
    assert copied.status_code == 201, copied.text
    copy = copied.json()["properties"]["r_object_id"]
    assert folders.titles(f"/folders/{copy}/objects") == ["deep", "inner"]
    new_inner = folders.at(f"/{folders.word}/target/source/inner").json()["properties"]["r_object_id"]
    assert folders.titles(f"/folders/{new_inner}/documents") == ["deep", "with words"]
    new_deep = folders.at(f"/{folders.word}/target/source/inner/deep").json()["properties"]
    assert sorted(new_deep["i_folder_id"]) == sorted([copy, new_inner])
    new_text = folders.at(f"/{folders.word}/target/source/inner/with words").json()["properties"]["r_object_id"]
    media = site.http.get(f"{site.repository}/objects/{new_text}/content-media", headers=site.bearer())
    assert media.content == b"copied words"
    into_itself = folders.ask("POST", f"/folders/{inner}/folders", folders.to(source))
    assert into_itself.status_code == 201
    assert folders.titles(f"/folders/{inner}/folders") == ["source"]


def test_ours_2_a_copy_tells_nothing_of_what_is_hidden(folders: Folders, site: Site) -> None:
    source = folders.folder("source")
    shown, hidden = folders.document("shown", source), folders.document("hidden", source)
    reader = site.world.person()
    for object_id in (source, shown):
        site.share(object_id)
    own = Folders(site, reader)
    copied = own.ask("POST", f"/folders/{own.cabinet}/folders", own.to(source))
    assert copied.status_code == 201, copied.text
    assert own.titles(f"/folders/{copied.json()['properties']['r_object_id']}/objects") == ["shown"]
    name = site.world.word()
    entries = [{"accessor": "owner", "basic-permission": "Delete"}, {"accessor": "world", "basic-permission": "Browse"}]
    assert folders.ask("POST", "/acls", {"name": name, "permitted": entries}).status_code == 201
    assert folders.ask("PUT", f"/objects/{hidden}/permission-set", {"acl-name": name}).status_code == 200
    refused = own.ask("POST", f"/folders/{own.cabinet}/folders", own.to(source))
    assert (refused.status_code, refused.json()["code"]) == (403, "E_NOT_PERMITTED")
    assert own.titles(f"/folders/{own.cabinet}/objects") == ["source"]


@pytest.mark.parametrize("depth", [30, pytest.param(100, marks=pytest.mark.campaign)])
def test_ours_2_a_tree_of_many_levels(folders: Folders, site: Site, depth: int) -> None:
    levels = [folders.folder("level 0")]
    for number in range(1, depth):
        levels.append(folders.folder(f"level {number}", levels[-1]))
    folders.document("bottom", levels[-1])
    path = folders.properties(levels[-1])["r_folder_path"][0]
    assert path.count("/") == depth + 1
    assert folders.at(f"{path}/bottom").json()["properties"]["object_name"] == "bottom"
    site.world.catch_up()
    assert folders.titles("/search", q="bottom", locations=f"/{folders.word}") == ["bottom"]
    target = folders.folder("target")
    copied = folders.ask("POST", f"/folders/{target}/folders", folders.to(levels[0]))
    assert copied.status_code == 201, copied.text
    assert folders.at(path.replace("/level 0", "/target/level 0", 1) + "/bottom").status_code == 200
    assert folders.link(levels[0], levels[-1]).json()["code"] == "E_INVALID_ATTR_VALUE"
    assert folders.ask("DELETE", f"/folders/{levels[0]}", **{"del-non-empty": "true"}).status_code == 204
    assert folders.titles(f"/folders/{folders.cabinet}/folders") == ["target"]


def test_ours_2_a_search_by_location_knows_every_link(folders: Folders, site: Site) -> None:
    first, second = folders.folder("first"), folders.folder("second")
    below = folders.folder("below", first)
    word = site.world.word()
    document = folders.document(word, below)
    assert folders.link(document, second).status_code == folders.link(below, second).status_code == 201
    site.world.catch_up()
    for place in ("first", "second", "second/below"):
        assert folders.titles("/search", q=word, locations=f"/{folders.word}/{place}") == [word]
    assert folders.ask("DELETE", f"/objects/{below}/parent-links/{first}").status_code == 204
    site.world.catch_up()
    assert folders.titles("/search", q=word, locations=f"/{folders.word}/first") == []
    assert folders.titles("/search", q=word, locations=f"/{folders.word}/second") == [word]


def test_ours_2_a_link_takes_write_on_the_object_and_on_the_folder(folders: Folders, site: Site) -> None:
    stranger, folder = site.world.person(), folders.folder("second")
    document = folders.document("filed")
    for object_id in (folders.cabinet, folder):
        site.share(object_id)
    path = f"/objects/{document}/parent-links"
    assert folders.ask("POST", path, folders.to(folder), person=stranger).status_code == 404
    site.share(document)
    assert folders.ask("POST", path, folders.to(folder), person=stranger).status_code == 403
    own = Folders(site, stranger)
    mine = own.document("mine")
    assert own.link(mine, folder).status_code == 403
    assert folders.link(document, own.cabinet).status_code == 404


@pytest.fixture
def unique(world: World, loop: Loop) -> Iterator[Folders]:
    site = Site(world, "neutral", loop, "repository.unique_names=true")
    yield Folders(site)
    site.close()


def test_ours_2_names_are_unique_where_the_settings_say_so(unique: Folders) -> None:
    first, second = unique.folder("first"), unique.folder("second")
    document, other = unique.document("name", first), unique.document("name", second)
    inner = unique.folder("name of a folder", first)
    refusals = {
        "make": unique.ask("POST", f"/folders/{first}/documents", {"properties": {"object_name": "name"}}),
        "make a folder": unique.ask("POST", f"/folders/{first}/folders", {"properties": {"object_name": "name"}}),
        "make a cabinet": unique.ask("POST", "/cabinets", {"properties": {"object_name": unique.word}}),
        "rename": unique.ask("POST", f"/objects/{inner}", {"properties": {"object_name": "name"}}),
        "link": unique.link(other, first),
        "move": unique.ask("PUT", f"/objects/{other}/parent-links/{second}", unique.to(first)),
        "copy": unique.ask("POST", f"/folders/{first}/documents", unique.to(other)),
    }
    for what, refused in refusals.items():
        assert (refused.status_code, refused.json()["code"]) == (409, "E_NAME_TAKEN"), what
    assert "Among the cabinets" in refusals["make a cabinet"].text
    assert "In that folder" in refusals["make"].text
    assert unique.titles(f"/folders/{first}/objects") == ["name", "name of a folder"]
    same = unique.ask("POST", f"/objects/{document}", {"properties": {"object_name": "name"}})
    assert same.status_code == 200
    moved = unique.ask("POST", f"/objects/{other}", {"properties": {"object_name": "free"}})
    assert moved.status_code == 200
    assert unique.link(other, first).status_code == 201
    taken = unique.ask("POST", f"/folders/{first}/documents", {"properties": {"object_name": "free"}})
    assert taken.json()["code"] == "E_NAME_TAKEN", "of an object for which the folder is not the first"


def test_ours_2_a_former_version_that_is_checked_in_as_the_current_one_needs_a_free_name(unique: Folders) -> None:
    folder, site = unique.folder("versions"), unique.site
    first = unique.document("plan", folder)
    versions.check_out(site, first)
    second = versions.check_in(site, first, json={"properties": {"object_name": "new plan"}})
    unique.document("plan", folder)
    versions.check_out(site, first)
    refused = versions.follow(site, first, "checkin-branch", "POST")
    assert (refused.status_code, refused.json()["code"]) == (409, "E_NAME_TAKEN")
    branch = versions.check_in(site, first, "checkin-branch", query="make-current=false")
    versions.check_out(site, branch)
    third = versions.check_in(site, branch, json={"properties": {"object_name": "new plan"}})
    assert "CURRENT" in versions.labels(site, third), "a version may take over the name of the one that it succeeds"
    assert "CURRENT" not in versions.labels(site, second)


def test_ours_2_the_copy_of_a_folder_leaves_out_former_versions(unique: Folders) -> None:
    source, target, site = unique.folder("source"), unique.folder("target"), unique.site
    former, linked = unique.document("plan", source), unique.document("sketch")
    assert unique.link(linked, source).status_code == 201
    current = versions.next_version(site, former, json={"properties": {"title": "changed"}})
    sketch = versions.next_version(site, linked)
    every: dict[str, Any] = {"include_all_versions": "true"}
    assert versions.listed(site, f"/folders/{source}/objects", **every) == [current, sketch, former, linked]

    copied = unique.ask("POST", f"/folders/{target}/folders", unique.to(source))
    assert copied.status_code == 201, copied.text
    copies = versions.listed(site, f"/folders/{copied.json()['properties']['r_object_id']}/objects", **every)
    assert [unique.properties(each)["object_name"] for each in copies] == ["plan", "sketch"]
    assert unique.properties(copies[0])["title"] == "changed"
    assert [versions.labels(site, each) for each in copies] == [["1.0", "CURRENT"]] * 2

    alone = unique.ask("POST", f"/folders/{target}/documents", unique.to(former))
    assert alone.status_code == 201, alone.text
    assert not alone.json()["properties"]["title"], "a former version is copied by its own address"

    reader = Folders(site, site.world.person())
    for object_id in (source, current, sketch):
        site.share(object_id)
    browsed = [{"accessor": "world", "basic-permission": "Browse"}]
    for object_id in (former, linked):
        assert unique.ask("PUT", f"/objects/{object_id}/permission-set", {"permitted": browsed}).status_code == 200
    by_reader = reader.ask("POST", f"/folders/{reader.cabinet}/folders", reader.to(source))
    assert by_reader.status_code == 201, by_reader.text


def test_ours_2_one_of_several_takes_a_name_at_one_time(unique: Folders) -> None:
    folder, statuses = unique.folder("raced"), list[int]()

    def make() -> None:
        made = unique.ask("POST", f"/folders/{folder}/documents", {"properties": {"object_name": "one"}})
        statuses.append(made.status_code)

    makers = [threading.Thread(target=make) for _ in range(4)]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join()
    assert sorted(statuses) == [201, 409, 409, 409]


def test_ours_2_a_copy_may_differ_from_its_original(site: Site) -> None:
    cabinet, word, json = site.cabinet(site.world.word()), site.world.word(), {"Accept": "application/json"}
    original = site.create(f"{word}.txt", b"the words", title="kept")
    here, kind = f"{site.repository}/folders/{cabinet}", site.type("document")

    def copy(path: str, body: Any, **headers: str) -> httpx.Response:
        sent = {"content": body} if isinstance(body, str) else {"json": body}
        return site.http.post(f"{here}/{path}", headers=site.bearer() | json | headers, **sent)

    reference = {"href": f"{site.base}{site.repository}/objects/{original}"}
    named = {"object_name": f"{word} copy", "keywords": ["a"], "r_object_type": kind}
    made = copy("objects", {**reference, "properties": named, "deep-copy": True})
    assert made.status_code == 201, made.text
    shown = made.json()["properties"]
    assert (shown["object_name"], shown["title"], shown["keywords"]) == (f"{word} copy", "kept", ["a"])
    media = site.http.get(f"{site.repository}/objects/{shown['r_object_id']}/content-media", headers=site.bearer())
    assert media.content == b"the words"
    document = (
        f'<document xmlns="{site.names.vocab_namespace}" href="{reference["href"]}"><properties><object_name>{word} xml'
        "</object_name></properties></document>"
    )
    as_xml = copy("documents", document, **{"Content-Type": "application/xml"})
    assert (as_xml.status_code, as_xml.json()["properties"]["object_name"]) == (201, f"{word} xml")
    assert copy("objects", {**reference, "properties": None}).json()["properties"]["object_name"] == f"{word}.txt"
    for wrong in (
        {"nothing": "x"},
        {"r_object_id": original},
        {"object_name": ""},
        {"r_object_type": site.type("folder")},
        {"acl_name": "nothing"},
    ):
        assert copy("objects", {**reference, "properties": wrong}).status_code == 400, wrong


def test_ours_2_a_folder_is_copied_with_its_members_or_alone(site: Site) -> None:
    cabinet, other = site.cabinet(site.world.word()), site.cabinet(site.world.word())
    address = f"{site.repository}/folders/{cabinet}/folders"
    made = site.http.post(address, json={"properties": {"object_name": "full"}}, headers=site.bearer())
    folder = made.json()["properties"]["r_object_id"]
    inside = f"{site.repository}/folders/{folder}/objects"
    assert site.http.post(inside, json={"properties": {"object_name": "in it"}}, headers=site.bearer()).is_success
    for number, (deep, members) in enumerate(((None, 1), (True, 1), (False, 0))):
        body: dict[str, Any] = {"href": f"{site.base}{site.repository}/folders/{folder}"}
        body |= {"properties": {"object_name": f"copy {number}"}} | ({} if deep is None else {"deep-copy": deep})
        copied = site.http.post(f"{site.repository}/folders/{other}/folders", json=body, headers=site.bearer())
        assert copied.status_code == 201, copied.text
        assert copied.json()["properties"]["object_name"] == f"copy {number}"
        listed = site.http.get(
            f"{site.repository}/folders/{copied.json()['properties']['r_object_id']}/objects",
            headers=site.bearer() | {"Accept": "application/json"},
        )
        assert [entry["title"] for entry in listed.json()["entries"]] == ["in it"] * members

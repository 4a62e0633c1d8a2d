"""A repository goes into a folder and comes out of it again: the same, whole or not at all, checked line by line."""

import base64
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from muniment.database.connections import Database
from muniment.repository.bulk import removal
from muniment.repository.bulk.exports import lines, rebuilding
from muniment.repository.bulk.exports.records import FILES
from muniment.repository.refusals import BadExport, InUse
from muniment.repository.store import repositories
from muniment.repository.store.objects import inventory, objects, table, version_tree
from muniment.repository.store.objects.contents import usage
from muniment.repository.store.objects.listing import object_acls
from muniment.repository.store.permissions import table as permissions_table
from muniment.repository.store.permissions.principals import Permission
from tests.clock import NOON
from tests.contents import counted_rows, counted_uses, lose, spoil
from tests.servers import Sqlite
from tests.shelf import ADMIN, Shelf
from tests.unit.repository.bulk.exports import rich
from tests.unit.repository.bulk.exports.oracle import everything
from tests.unit.repository.bulk.exports.places import (
    CHARTER,
    GUARD,
    Place,
    export,
    files,
    nothing,
    numbered,
    replace,
    rewrite,
)


@pytest.fixture
def place(fresh: Callable[..., str], tmp_path: Path) -> Iterator[Place]:
    made = Place(fresh("repository"), tmp_path / "place")
    yield made
    made.database.close()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a transaction of an import keep two lines."""
    monkeypatch.setattr(lines, "PORTION", 2)


@pytest.mark.slow
def test_everything_comes_back(shelf: Shelf, place: Place, tmp_path: Path) -> None:
    made = rich.fill(shelf)
    result = export(shelf, tmp_path / "first")
    assert result.manifest is not None
    assert result.manifest.files["objects.jsonl"].lines == 8
    assert result.manifest.contents == 5
    first = files(tmp_path / "first")
    assert set(first) == {*FILES, "contents.sha256", *(name for name in first if name.startswith("content/"))}
    assert "Other" not in first["objects.jsonl"].decode(), "what is in the wastebasket is left out"
    place.bring_in(tmp_path / "first")
    assert place.guard == GUARD
    with place.database.read() as cx:
        stored = inventory.rows(cx, place.repository.id, [made["letter"].id])[made["letter"].id]
        assert counted_uses(cx) == counted_rows(cx)
        recorded = {key: amount for key, amount in usage.usage_by_owner(cx).items() if amount != usage.NOTHING}
        assert recorded == inventory.amounts_by_owner(cx)
    assert stored.content is not None
    assert b"".join(place.store.read(stored.content)) == b"the charter was sealed"
    assert everything(place.database, place.repository.id) == everything(shelf.database, shelf.repository.id)
    assert export(place, tmp_path / "second").manifest is not None
    assert files(tmp_path / "second") == first


def test_an_acl_keeps_a_name_that_only_an_earlier_release_allowed(shelf: Shelf, place: Place, tmp_path: Path) -> None:
    acl = shelf.acl("readers", {"world": Permission.READ})
    with shelf.database.begin() as cx:
        table_of_acls = permissions_table.acls
        cx.execute(table_of_acls.update().where(table_of_acls.c.id == acl.id).values(name="staff/readers "))
    export(shelf, tmp_path / "first")
    place.bring_in(tmp_path / "first")
    assert everything(place.database, place.repository.id) == everything(shelf.database, shelf.repository.id)


@pytest.mark.slow
def test_a_tree_without_its_first_version_comes_back(shelf: Shelf, place: Place, tmp_path: Path) -> None:
    first = rich.fill(shelf)["letter"].id
    with shelf.database.begin() as cx:
        objects.delete(cx, shelf.repository, ADMIN, first, shelf.now)
        left = [each.id for each in version_tree.members(cx, [first])]
    export(shelf, tmp_path / "first")
    place.bring_in(tmp_path / "first")
    assert everything(place.database, place.repository.id) == everything(shelf.database, shelf.repository.id)
    with place.database.read() as cx:
        assert [each.id for each in version_tree.members(cx, [first])] == left


@pytest.mark.slow
def test_an_import_adds_no_version_to_a_tree_of_another_repository(shelf: Shelf, place: Place, tmp_path: Path) -> None:
    first = rich.fill(shelf)["letter"].id
    with shelf.database.begin() as cx:
        objects.delete(cx, shelf.repository, ADMIN, first, shelf.now)
        in_tree = table.objects.c.chronicle_id == first
        version = cx.execute(sa.select(table.objects).where(in_tree).limit(1)).mappings().one()
        of_version = permissions_table.acls.c.id == version["acl_id"]
        acl = cx.execute(sa.select(permissions_table.acls).where(of_version)).mappings().one()
    export(shelf, tmp_path / "first")
    with place.database.begin() as cx:
        other: dict[str, Any] = {"repository_id": repositories.add(cx, "other", GUARD, "", NOON).id}
        acl_of_other = {**acl, **other, "id": 10**6, "shown_id": "45ffffffffffffff"}
        cx.execute(permissions_table.acls.insert().values(acl_of_other))
        other |= {"seq": 10**6, "id": "09ffffffffffffff", "acl_id": 10**6}
        other |= dict.fromkeys(("folder_id", "further_folders", "content_key"))
        cx.execute(table.objects.insert().values({**version, **other}))
    with pytest.raises(BadExport, match=f"the versions of '{first}' belong to another repository"):
        place.bring_in(tmp_path / "first")


@pytest.mark.slow
def test_it_comes_back_where_it_was_removed(shelf: Shelf, place: Place, tmp_path: Path) -> None:
    rich.fill(shelf)
    before = everything(shelf.database, shelf.repository.id)
    export(shelf, tmp_path / "first")
    place.database.close()
    place.database, place.store = shelf.database, shelf.store
    with shelf.database.begin() as cx:
        place.repository = repositories.add(cx, "copy", GUARD, "", NOON)
    with pytest.raises(InUse, match=r"has the object .* already"):
        place.begin(tmp_path / "first")
    assert place.guard == GUARD, "nothing was begun"
    with shelf.database.begin() as cx:
        while (gone := removal.remove_objects(cx, shelf.repository, 100)).number:
            for key in gone.freed:
                shelf.store.remove(key)
        removal.finish(cx, shelf.repository)
    place.identify = lambda _names: {}
    place.bring_in(tmp_path / "first")
    assert everything(shelf.database, place.repository.id) == before, "even without a directory everybody is known"


@pytest.mark.slow
@pytest.mark.only("sqlite", "which key stands for whom is no matter of the database")
def test_a_namesake_gets_nothing_of_a_former_bearer(shelf: Shelf, place: Place, tmp_path: Path) -> None:
    """failures C8"""
    made = rich.fill(shelf)
    export(shelf, tmp_path / "first")
    place.identify = lambda names: {name: f"another {name}" for name in names}
    place.bring_in(tmp_path / "first")
    with place.database.read() as cx:
        rows = inventory.rows(cx, place.repository.id, [made["former's"].id, made["Jon's"].id])
    former, jon = rows[made["former's"].id], rows[made["Jon's"].id]
    assert jon.owner_key == "jon@demo", "the name means who bears it here"
    assert former.owner_key.startswith("id:")
    export(place, tmp_path / "second")
    first, second = files(tmp_path / "first"), files(tmp_path / "second")
    assert {name for name in first if first[name] != second.get(name)} == {"bearers.jsonl"}


@pytest.mark.slow
def test_an_import_that_is_interrupted_anywhere_goes_on(
    shelf: Shelf, place: Place, tmp_path: Path, small: None
) -> None:
    class Interrupted(Exception):
        pass

    rich.fill(shelf)
    export(shelf, tmp_path / "first")
    place.begin(tmp_path / "first")
    seen: list[tuple[str, int]] = []

    def interrupt(what: str, count: int, _total: int | None) -> None:
        seen.append((what, count))
        raise Interrupted

    while True:
        assert place.guard == "", "nobody enters a half"
        try:
            place.go_on(tmp_path / "first", interrupt)
        except Interrupted:
            continue
        break
    assert len(seen) == len(set(seen)) > 10, "no line was kept twice"
    assert everything(place.database, place.repository.id) == everything(shelf.database, shelf.repository.id)
    with place.database.read() as cx:
        assert counted_uses(cx) == counted_rows(cx)


@pytest.mark.slow
@pytest.mark.only("sqlite", "a rule of the file, not of the database")
def test_a_half_import_keeps_its_unnamed_acls_and_takes_no_other_export(
    shelf: Shelf, place: Place, tmp_path: Path
) -> None:
    rich.fill(shelf)
    export(shelf, tmp_path / "first")

    def stop(what: str, _count: int, _total: int | None) -> None:
        if what == "ACLs":
            raise KeyboardInterrupt

    place.begin(tmp_path / "first")
    with pytest.raises(KeyboardInterrupt):
        place.go_on(tmp_path / "first", stop)
    with place.database.begin() as cx:
        assert object_acls.remove_unused(cx) == 0, "the objects that carry them are still to come"
    shelf.create({"object_name": "new"})
    export(shelf, tmp_path / "second")
    with pytest.raises(InUse, match="another export"):
        place.begin(tmp_path / "second")
    with pytest.raises(InUse, match="not finished"):
        export(place, tmp_path / "half")
    place.go_on(tmp_path / "first")
    with pytest.raises(InUse, match="not empty"):
        place.begin(tmp_path / "first")


@pytest.mark.slow
@pytest.mark.only("sqlite", "files, not databases")
def test_an_export_goes_on_and_writes_no_content_twice(shelf: Shelf, place: Place, tmp_path: Path) -> None:
    rich.fill(shelf)
    whole = tmp_path / "whole"
    export(shelf, whole)
    contents = [path for path in (whole / "content").rglob("*") if path.is_file()]
    numbers = {path: path.stat().st_ino for path in contents}
    contents[0].write_bytes(b"altered")
    contents[1].unlink()
    (whole / "content" / "00" / "00").mkdir(parents=True, exist_ok=True)
    (whole / "content" / "00" / "00" / ("0" * 64)).write_bytes(b"of an object that is gone")
    (whole / "content" / "incoming").mkdir()
    (whole / "content" / "incoming" / CHARTER).write_bytes(b"half")
    (whole / "objects.jsonl.part").write_bytes(b"half")
    (whole / "manifest.json").rename(whole / "export.lock")
    (whole / "export.lock").write_text("demo")
    export(shelf, whole)
    export(shelf, tmp_path / "other")
    assert files(whole) == files(tmp_path / "other")
    assert [path for path in contents if path.stat().st_ino == numbers[path]] == contents[2:]


@pytest.mark.slow
@pytest.mark.only("sqlite", "files, not databases")
def test_a_damaged_content_leaves_no_whole_export(shelf: Shelf, place: Place, tmp_path: Path) -> None:
    made = rich.fill(shelf)
    for _copy in range(2):  # it was uploaded twice
        lose(tmp_path / "content", b"the charter was sealed")
    spoil(tmp_path / "content", b"a second version")
    result = export(shelf, tmp_path / "first")
    assert result.manifest is None
    assert {made["letter"].id, made["Jon's"].id} < set(result.damaged_ids)
    with pytest.raises(BadExport, match="no whole export"):
        place.bring_in(tmp_path / "first")


@pytest.mark.only("sqlite", "files, not databases")
def test_an_export_takes_no_folder_of_others(shelf: Shelf, place: Place, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "manifest.txt").write_text("mine")
    with pytest.raises(BadExport, match="something else"):
        export(shelf, tmp_path / "mine")
    export(shelf, tmp_path / "first")
    with pytest.raises(BadExport, match="of the repository 'demo'"):
        export(place, tmp_path / "first")
    assert rebuilding.inspect(tmp_path / "first", nothing).manifest.repository == "demo", "and it is still whole"


def _first(**values: Any) -> Callable[[list[Any]], object]:
    return lambda some: some[0].update(values)


def _of(which: dict[str, Any], **values: Any) -> Callable[[list[Any]], object]:
    return lambda some: some[numbered(some, **which)].update(values)


_UNKNOWN = "09ffffffffffffff"

DAMAGES: dict[str, tuple[str, Callable[[list[Any]], object], str]] = {
    "an unknown field": ("objects.jsonl", _first(more=1), r"line 1: Object contains unknown field `more`"),
    "a field is missing": ("objects.jsonl", lambda some: some[2].pop("owner"), r"line 3: .*`owner`"),
    "a wrong kind": ("objects.jsonl", _first(revision="one"), r"line 1: Expected `int`"),
    "an id of a path": ("objects.jsonl", _first(id="0c../../../etc/p"), r"line 1"),
    "an id of another kind": ("objects.jsonl", _first(id=_UNKNOWN), r"line 1: The id .* is not that of an object"),
    "an id twice": (
        "objects.jsonl",
        lambda some: some.append(some[-1]),
        r"line 9: the object .* is there twice",
    ),
    "a digest of a path": (
        "objects.jsonl",
        _of({"name": "Of him who came"}, content={"sha256": "../" * 21 + "a", "size": 1}),
        r"line 5: .*sha256",
    ),
    "another size": (
        "objects.jsonl",
        _of({"name": "Of him who came"}, content={"sha256": CHARTER, "size": 5}),
        r"line 5: the file content/.* is missing, or does not have the size 5",
    ),
    "a content that is not there": (
        "objects.jsonl",
        _of({"name": "Of him who came"}, content={"sha256": "a" * 64, "size": 5}),
        r"line 5: the file content/aa/aa/a+ is missing",
    ),
    "an unknown type": ("objects.jsonl", _of({"type": "letter"}, type="parcel"), r"line 3: There is no object type"),
    "an unknown property": (
        "objects.jsonl",
        _of({"type": "letter"}, properties={"stamp": ["x"]}),
        r"line 3: The type 'letter' has no property 'stamp'",
    ),
    "a value of another kind": (
        "objects.jsonl",
        _of({"type": "letter"}, properties={"pages": ["three"]}),
        r"line 3: The values of 'pages'",
    ),
    "several values for one": (
        "objects.jsonl",
        _of({"type": "letter"}, properties={"pages": [1, 2]}),
        r"line 3: The values of 'pages'",
    ),
    "a huge number": (
        "objects.jsonl",
        _of({"type": "letter"}, properties={"pages": [2**63]}),
        r"line 3: The values of 'pages'",
    ),
    "a date after the year 9999": (
        "objects.jsonl",
        _of({"type": "letter"}, properties={"sent": [2**61]}),
        r"line 3: The values of 'sent'",
    ),
    "a text that is too long": (
        "objects.jsonl",
        _of({"type": "letter"}, properties={"tags": ["x" * 21]}),
        r"line 3: The values of 'tags' do not fit the property, which is of kind string with at most 20 characters",
    ),
    "a character that cannot be stored": ("objects.jsonl", _first(name="a\0b"), r"line 1: it holds a character"),
    "a moment after the year 9999": (
        "objects.jsonl",
        _first(created=2**61),
        r"line 1: Expected `int` <= 253402300799999999",
    ),
    "no name": ("objects.jsonl", _first(name=""), r"line 1: An object has a name"),
    "a dangling folder": (
        "objects.jsonl",
        _of({"type": "letter"}, folders=["0bffffffffffffff"]),
        r"line 3: it refers to the object '0bf+', which",
    ),
    "a document as a folder": (
        "objects.jsonl",
        lambda some: some[4].update(folders=[some[3]["id"]]),
        r"line 5: It lies in something that is no folder",
    ),
    "a folder in itself": (
        "objects.jsonl",
        lambda some: some[numbered(some, name="Later")].update(folders=[some[numbered(some, name="Inner")]["id"]]),
        r"line [26]: the folder would lie in itself",
    ),
    "a dangling ACL": ("objects.jsonl", _first(acl="45ffffffffffffff"), r"line 1: it refers to the ACL '45f+'"),
    "a dangling version": (
        "objects.jsonl",
        _of({"comment": "a branch"}, antecedent=_UNKNOWN),
        r"line 8: it refers to the object '09f+'",
    ),
    "two current versions": (
        "objects.jsonl",
        _of({"comment": "a branch"}, labels=["1.0.1.0", "CURRENT"]),
        r"the versions of .* do not have exactly one current version",
    ),
    "labels without a number": (
        "objects.jsonl",
        _of({"comment": "a branch"}, labels=["draft"]),
        r"line 8: The labels of a version",
    ),
    "a check-out of a version of no tree": (
        "objects.jsonl",
        _of({"name": "Of him who came"}, labels=["2.0"], superseded=True, lock={"owner": "jon@demo", "since": 0}),
        r"line 5: It is a version of no tree",
    ),
    "a bearer whom nobody knows": (
        "objects.jsonl",
        _of({"type": "letter"}, owner_key={"name": "jon@demo", "former": 9}),
        r"No line of bearers.jsonl describes the former bearer 9",
    ),
    "a type whose parent comes later": (
        "types.jsonl",
        lambda some: some.reverse(),
        r"types.jsonl, line 1: There is no object type 'paper'",
    ),
    "a type that is built in": (
        "types.jsonl",
        _first(name="document"),
        r"types.jsonl, line 1: There is an object type",
    ),
    "a relation to nothing": ("relations.jsonl", _first(child=_UNKNOWN), r"relations.jsonl, line 1: it refers to the"),
    "a relation of no type": (
        "relations.jsonl",
        _first(name="knows"),
        r"relations.jsonl, line 1: There is no relation",
    ),
    "a comment on nothing": ("comments.jsonl", _first(object=_UNKNOWN), r"comments.jsonl, line 1: it refers to the"),
    "a reply to nothing": (
        "comments.jsonl",
        lambda some: some[1].update(replies_to="43ffffffffffffff"),
        r"comments.jsonl, line 2: it refers to the comment",
    ),
    "a comment without text": ("comments.jsonl", _first(text=" "), r"comments.jsonl, lines 1 to 2: The text of"),
    "an ACL that names one twice": (
        "acls.jsonl",
        lambda some: some[0]["entries"].append(some[0]["entries"][0]),
        r"acls.jsonl, line 1: The ACL names one user or group twice",
    ),
    "an unknown permission": (
        "acls.jsonl",
        lambda some: some[0]["entries"][0].update(permission="everything"),
        r"acls.jsonl, line 1: Invalid enum value",
    ),
    "an ACL twice": ("acls.jsonl", lambda some: some.append(some[-1]), r"acls.jsonl, line \d: an id is there twice"),
    "an accessor that is no name": (
        "acls.jsonl",
        lambda some: some[0]["entries"].append({"accessor": "everybody", "permission": "delete"}),
        r"'everybody' is no folded name",
    ),
    "a saved search without a name": ("saved-searches.jsonl", _first(name=""), r"saved-searches.jsonl, lines 1 to 2"),
    "a document that is no Base64": (
        "saved-searches.jsonl",
        _first(document="%"),
        r"saved-searches.jsonl, line 1: Invalid base64",
    ),
}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An export that each test copies."""
    folder = tmp_path_factory.mktemp("original")
    sqlite = Sqlite(folder)
    url = sqlite.fresh("repository")
    database = Database(url)
    shelf = Shelf(database, folder, NOON)
    rich.fill(shelf)
    export(shelf, folder / "export")
    yield folder / "export"
    database.close()
    sqlite.drop(url)


@pytest.fixture
def damaged(original: Path, tmp_path: Path) -> Path:
    """A copy of an export, to be damaged."""
    target = tmp_path / "damaged"
    for path in original.rglob("*"):
        (target / path.relative_to(original).parent).mkdir(parents=True, exist_ok=True)
        if path.is_file():
            (target / path.relative_to(original)).write_bytes(path.read_bytes())
    return target


@pytest.mark.slow
@pytest.mark.only("sqlite", "lines are read alike for both")
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_line_that_cannot_be_kept_is_named(damaged: Path, place: Place, damage: str) -> None:
    """B-class input: the manifest describes the malicious lines, so only the lines themselves give them away."""
    name, change, sentence = DAMAGES[damage]
    rewrite(damaged, name, change)
    with pytest.raises(BadExport, match=sentence):
        place.bring_in(damaged)
    if place.guard:
        with place.database.read() as cx:
            assert not inventory.next_objects(cx, place.repository.id, 0, 1), "nothing was begun"


@pytest.mark.slow
@pytest.mark.only("sqlite", "files, not databases")
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b'{"id":\n', "objects.jsonl, line 1: Input data was truncated"),
        (b"[" * 200_000 + b"\n", "objects.jsonl, line 1: "),
        (b'{"id":' * 200_000 + b"\n", "objects.jsonl, line 1: "),
        (b'{"id":"\xff"}\n', "objects.jsonl, line 1: "),
        (b'{"id":"\\ud800"}\n', "objects.jsonl, line 1: "),
        (b"\n", "objects.jsonl, line 1: "),
        (b"{}", "objects.jsonl, line 1: it ends too early"),
        (b"null\n", "objects.jsonl, line 1: "),
    ],
)
def test_a_line_that_is_no_json_of_ours_is_named(damaged: Path, place: Place, text: bytes, sentence: str) -> None:
    replace(damaged, "objects.jsonl", text)
    with pytest.raises(BadExport, match=sentence):
        place.bring_in(damaged)
    assert place.guard == GUARD, "nothing was begun"


@pytest.mark.slow
@pytest.mark.only("sqlite", "files, not databases")
def test_a_line_may_not_be_endless(damaged: Path, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LONGEST_LINE", 1000)
    replace(damaged, "objects.jsonl", b" " * 1001 + b"\n")
    with pytest.raises(BadExport, match=r"objects.jsonl, line 1: it is longer than 1000 bytes"):
        place.bring_in(damaged)


@pytest.mark.slow
@pytest.mark.only("sqlite", "files, not databases")
def test_what_the_manifest_does_not_describe_is_refused(damaged: Path, place: Place, tmp_path: Path) -> None:
    """A flipped bit that is still JSON, a file that is gone, a link to elsewhere, another format, no manifest."""
    lines_of = damaged / "relations.jsonl"
    whole = lines_of.read_bytes()
    for altered in (whole.replace(b"root", b"toor", 1), whole + whole, whole[: whole.index(b"\n") + 1]):
        lines_of.write_bytes(altered)
        with pytest.raises(BadExport, match=r"relations.jsonl is not the file that the manifest describes"):
            place.bring_in(damaged)
    lines_of.unlink()
    with pytest.raises(BadExport, match=r"relations.jsonl: no such file"):
        place.bring_in(damaged)
    (tmp_path / "aside").write_bytes(whole)
    lines_of.symlink_to(tmp_path / "aside")
    with pytest.raises(BadExport, match=r"relations.jsonl"):
        place.bring_in(damaged)
    lines_of.unlink()
    os.mkfifo(lines_of)
    with pytest.raises(BadExport, match=r"relations.jsonl is not a regular file"):
        place.bring_in(damaged)
    manifest = damaged / "manifest.json"
    described = manifest.read_bytes()
    manifest.write_bytes(described.replace(b'"format": 1', b'"format": 2'))
    with pytest.raises(BadExport, match=r"of format 2; this release reads format 1"):
        place.bring_in(damaged)
    for altered in (b"", b"{", b'{"format": 1}', b"[" * 100_000, described.replace(b'"files"', b'"flies"')):
        manifest.write_bytes(altered)
        with pytest.raises(BadExport, match=r"manifest.json is damaged"):
            place.bring_in(damaged)
    manifest.unlink()
    with pytest.raises(BadExport, match=r"no whole export"):
        place.bring_in(damaged)
    assert place.guard == GUARD, "nothing was begun"


@pytest.mark.only("sqlite", "files, not databases")
def test_an_altered_content_is_named_and_nothing_of_it_is_kept(damaged: Path, place: Place, tmp_path: Path) -> None:
    content = damaged / "content" / CHARTER[:2] / CHARTER[2:4] / CHARTER
    content.write_bytes(b"the charter was forged")
    place.begin(damaged)
    with pytest.raises(BadExport, match=f"{CHARTER} is damaged: its bytes have another digest"):
        place.go_on(damaged)
    assert place.guard == "", "the import is not finished"
    with place.database.read() as cx:
        assert not inventory.next_objects(cx, place.repository.id, 0, 1)
    kept = [path for path in (tmp_path / "place" / "content").rglob("*") if path.is_file()]
    assert [path.name for path in kept if path.name != "removals.lock"] == []
    content.write_bytes(b"the charter was sealed")
    place.go_on(damaged)
    assert place.guard == GUARD


@pytest.mark.slow
@pytest.mark.only("sqlite", "a rule of the lines")
def test_a_saved_document_travels_as_it_was(original: Path) -> None:
    line = msgspec.json.decode((original / "saved-searches.jsonl").read_bytes().splitlines()[0])
    assert base64.b64decode(line["document"]) == "<search>ä</search>".encode("utf-16")

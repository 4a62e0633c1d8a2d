"""Make, read, change, delete an object; each note of a change in the same transaction."""

import itertools
import threading
import tracemalloc
from functools import partial
from unittest.mock import patch

import msgspec
import pytest

from muniment.repository import keys
from muniment.repository.refusals import (
    InUse,
    NotPermitted,
    NotWritable,
    UnknownAcl,
    UnknownObject,
    UnknownProperty,
    UnknownType,
    VersionConflict,
    WrongValue,
)
from muniment.repository.store import repositories
from muniment.repository.store.change_log import changes
from muniment.repository.store.change_log.changes import START
from muniment.repository.store.extraction import queue
from muniment.repository.store.extraction.queue import ExtractedText
from muniment.repository.store.filters.cursors import Stretch
from muniment.repository.store.objects import inventory, objects
from muniment.repository.store.objects.decisions import assigned_acls, creation
from muniment.repository.store.objects.decisions.creation import NewObject
from muniment.repository.store.objects.folders import paths
from muniment.repository.store.objects.listing import lists, object_ids
from muniment.repository.store.objects.listing.lists import Folder
from muniment.repository.store.objects.properties.properties import Given
from muniment.repository.store.objects.table import StoredObject
from muniment.repository.store.objects.types import types_file
from muniment.repository.store.permissions.principals import Permission, Principals
from tests.plans import steps
from tests.shelf import ADMIN, JON, MARTA, Shelf
from tests.waiting import PATIENCE


def noted(shelf: Shelf) -> list[tuple[str, str]]:
    with shelf.database.read() as cx:
        log = changes.after(cx, shelf.repository.id, START, 100)
    return [(change.object_id, change.kind) for change in log]


def test_an_id_says_the_kind_and_stands_for_the_number(shelf: Shelf) -> None:
    cabinet = shelf.create({"object_name": "c"}, type_name="cabinet")
    folder = shelf.create({"object_name": "f"}, type_name="folder", folder_id=cabinet.id)
    document = shelf.create({"object_name": "d"}, folder_id=folder.id)
    other = shelf.create({"object_name": "o"}, type_name="sysobject")
    made = (cabinet, folder, document, other)
    assert [stored.seq for stored in made] == [1, 2, 3, 4]
    with shelf.database.read() as cx:
        digits = [keys.scramble(cx, keys.OBJECTS, stored.seq) for stored in made]
    assert [stored.id for stored in made] == [a + b for a, b in zip(("0c", "0b", "09", "08"), digits, strict=True)]
    assert [object_ids.kind_of(stored.id) for stored in made] == ["cabinet", "folder", "document", "object"]


def test_ids_of_objects_made_one_after_another_tell_neither_order_nor_distance(shelf: Shelf) -> None:
    made = [shelf.create({"object_name": f"o {n}"}) for n in range(64)]
    assert [stored.seq for stored in made] == list(range(1, 65))
    numbers = [int(stored.id.removeprefix("09"), 16) for stored in made]
    rising = sum(one < other for one, other in itertools.pairwise(numbers))
    assert 8 < rising < 55, "as often up as down"
    assert len({other - one for one, other in itertools.pairwise(numbers)}) == 63
    changed = sum((one ^ other).bit_count() for one, other in itertools.pairwise(numbers)) / 63
    assert 24 < changed < 32, "half of 56 bits"
    assert min(numbers) >= keys.FORMER


def test_objects_with_ids_of_the_former_spelling_go_on_and_no_new_one_gets_such_an_id(shelf: Shelf) -> None:
    """Exports and folders hold them: two digits of the kind, the repository's number in 6, and the counter in 8."""
    with patch.object(object_ids, "make", lambda _cx, _catalogue, _type, seq: f"09000001{seq:08x}"):
        former = [shelf.create({"object_name": f"o {n}"}).id for n in range(3)]
    new = [shelf.create({"object_name": f"o {n}"}).id for n in range(40)]
    assert former[0] == "0900000100000001"
    assert not any(each.startswith("00", 2) for each in new), "the former ids of up to 65,535 repositories begin so"
    assert shelf.read(former[0].upper())[0].id == shelf.change(former[0], {"title": "t"}).id == former[0]
    with shelf.database.read() as cx:
        assert [stored.id for stored in inventory.next_objects(cx, shelf.repository.id, 0, 100)] == former + new


def test_a_number_is_never_given_twice(shelf: Shelf) -> None:
    first = shelf.create({"object_name": "first"})
    shelf.delete(first.id)
    assert shelf.create({"object_name": "second"}).seq > first.seq


def test_what_was_created_is_read_again(shelf: Shelf) -> None:
    given: dict[str, Given] = {
        "object_name": "Größe 🦉",
        "title": "t",
        "keywords": ["a", "b"],
        "a_content_type": "text/plain",
    }
    made = shelf.create(given)
    stored, permission = shelf.read(made.id.upper())
    assert (stored.name, stored.owner, stored.media_type) == ("Größe 🦉", "Marta@demo", "text/plain")
    assert stored.properties == {"title": ["t"], "keywords": ["a", "b"]}
    assert stored.created == stored.modified == shelf.now
    assert (stored.creator, stored.modifier, stored.revision) == ("Marta@demo", "Marta@demo", 1)
    assert permission == Permission.DELETE
    assert stored.position is None
    assert made.position is not None


def test_a_custom_property_keeps_its_kind(shelf: Shelf) -> None:
    with shelf.database.begin() as cx:
        types_file.load(
            cx,
            shelf.repository.id,
            b"[types.invoice.properties]\namount='double'\npaid='boolean'\ndue='date'\nlines='integer'",
            shelf.now,
        )
    made = shelf.create(
        {"object_name": "i", "amount": 5, "paid": False, "due": "2026-11-21T12:00:00Z", "lines": 2**62},
        type_name="invoice",
    )
    stored, _ = shelf.read(made.id)
    assert stored.properties == {"amount": [5.0], "paid": [False], "due": [shelf.now], "lines": [2**62]}
    assert type(stored.properties["amount"][0]) is float
    assert made.id.startswith("09")


def test_an_unfiled_object_is_private_and_a_filed_one_has_its_folders_acl(shelf: Shelf) -> None:
    unfiled = shelf.create({"object_name": "u"})
    with pytest.raises(UnknownObject):
        shelf.read(unfiled.id, JON)
    cabinet = shelf.create({"object_name": "c", "acl_name": "public"}, type_name="cabinet")
    filed = shelf.create({"object_name": "f"}, folder_id=cabinet.id)
    assert shelf.read(filed.id, JON)[1] == Permission.READ
    assert filed.folder_id == cabinet.id


def test_what_may_not_be_browsed_answers_like_what_is_not_there(shelf: Shelf) -> None:
    hidden = shelf.create({"object_name": "h"}).id
    absent = hidden[:8] + "ffffffff"
    for object_id in (hidden, absent):
        verbs = (
            partial(shelf.read, object_id, JON),
            partial(shelf.change, object_id, {"title": "x"}, JON),
            partial(shelf.delete, object_id, JON),
            partial(shelf.create, {"object_name": "x"}, JON, folder_id=object_id),
        )
        for verb in verbs:
            with pytest.raises(UnknownObject) as refused:
                verb()
            sentences = (f"There is no object '{object_id}'.", f"There is no folder '{object_id}'.")
            assert refused.value.sentence in sentences


@pytest.mark.parametrize("object_id", ["", "x", "09", "09" + "g" * 14, "~123456789abcdef", "0" * 16, "09" * 20])
def test_what_is_no_id_is_unknown(shelf: Shelf, object_id: str) -> None:
    with pytest.raises(UnknownObject):
        shelf.read(object_id)


def test_an_object_of_another_repository_is_unknown(shelf: Shelf) -> None:
    stored = shelf.create({"object_name": "x"})
    with shelf.database.begin() as cx:
        other = repositories.add(cx, "other", "r", "", shelf.now)
        with pytest.raises(UnknownObject):
            objects.read(cx, other, stored.id, ADMIN)
        assert inventory.rows(cx, other.id, [stored.id]) == {}


def test_each_verb_needs_its_permission(shelf: Shelf) -> None:
    for level in (Permission.BROWSE, Permission.READ, Permission.VERSION, Permission.WRITE, Permission.DELETE):
        acl = shelf.acl(level.name, {"guests@demo": level})
        folder = shelf.create({"object_name": "f", "acl_name": acl.name}, type_name="cabinet")
        stored = shelf.create({"object_name": "d", "acl_name": acl.name}).id
        attempts: dict[Permission, list[partial[StoredObject]]] = {
            Permission.WRITE: [
                partial(shelf.change, stored, {"title": "x"}, JON),
                partial(shelf.create, {"object_name": "n"}, JON, folder_id=folder.id),
            ],
            Permission.DELETE: [partial(shelf.delete, stored, JON)],
        }
        with shelf.database.read() as cx:
            if level >= Permission.READ:
                assert objects.readable(cx, shelf.repository, stored, JON).id == stored
            else:
                with pytest.raises(NotPermitted):
                    objects.readable(cx, shelf.repository, stored, JON)
        for needed, verbs in attempts.items():
            for verb in verbs:
                if level >= needed:
                    verb()
                else:
                    with pytest.raises(NotPermitted):
                        verb()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "refusal"),
    [
        ({"owner_name": "jon@demo"}, NotWritable),
        ({"r_object_type": "folder"}, NotWritable),
        ({"r_modify_date": "2026-01-01"}, NotWritable),
        ({"r_object_id": "09000001000000ff"}, NotWritable),
        ({"i_folder_id": "0c00000100000001"}, NotWritable),
        ({"r_index_status": "done"}, NotWritable),
        ({"nothing": "x"}, UnknownProperty),
        ({"title": 5}, WrongValue),
        ({"title": ["a", "b"]}, WrongValue),
        ({"object_name": ""}, WrongValue),
        ({"object_name": "x" * 256}, WrongValue),
        ({"acl_name": "nothing"}, UnknownAcl),
    ],
)
def test_what_is_not_the_callers_to_write_changes_nothing(
    shelf: Shelf, given: dict[str, Given], refusal: type[Exception]
) -> None:
    with pytest.raises(refusal):
        shelf.create({"object_name": "x", **given})
    stored = shelf.create({"object_name": "x"})
    with pytest.raises(refusal):
        shelf.change(stored.id, given)
    assert noted(shelf) == [(stored.id, "created")]
    assert shelf.read(stored.id)[0].revision == 1


def test_an_object_needs_a_name_and_a_type(shelf: Shelf) -> None:
    with pytest.raises(WrongValue):
        shelf.create({"title": "nameless"})
    with pytest.raises(WrongValue, match="another order"):
        shelf.create({"object_name": "invoice\u202efdp.exe"})
    with pytest.raises(UnknownType):
        shelf.create({"object_name": "x"}, type_name="nothing")


def test_a_client_may_send_back_what_it_read(shelf: Shelf) -> None:
    stored = shelf.create({"object_name": "x", "title": "t"})
    read = inventory.values(stored, shelf.catalogue(), "private")
    given: dict[str, Given] = {
        name: [*found] if name in ("keywords", "authors", "r_version_label") else found[0]
        for name, found in read.items()
    }
    given |= {"r_index_status": "empty", "r_modify_date": "2026-11-21T12:00:00.000+00:00"}
    given["r_creation_date"] = given["r_modify_date"]
    changed = shelf.change(stored.id, {**given, "title": "new"})
    assert changed.properties == {"title": ["new"]}
    assert changed.revision == 2
    assert noted(shelf) == [(stored.id, "created"), (stored.id, "properties")]


def test_a_change_keeps_what_it_does_not_name_and_null_takes_away(shelf: Shelf) -> None:
    stored = shelf.create({"object_name": "x", "title": "t", "subject": "s", "keywords": ["a"]})
    changed = shelf.change(stored.id, {"title": None, "keywords": ["b", "c"]})
    assert changed.properties == {"subject": ["s"], "keywords": ["b", "c"]}
    assert (changed.modified, changed.created) == (shelf.now + 1, shelf.now)


def test_a_version_that_was_overtaken_is_refused(shelf: Shelf) -> None:
    stored = shelf.create({"object_name": "x"})
    view = shelf.view(MARTA)
    with shelf.database.begin() as cx:
        objects.change(cx, view, stored.id, {"title": "a"}, 0, expected=1)
        with pytest.raises(VersionConflict):
            objects.change(cx, view, stored.id, {"title": "b"}, 0, expected=1)
        with pytest.raises(VersionConflict):
            objects.delete(cx, shelf.repository, MARTA, stored.id, 0, expected=1)


def test_the_acl_is_the_owners_to_assign_even_when_he_may_only_read(shelf: Shelf) -> None:
    shelf.acl("read only", {"owner": Permission.READ, "jon@demo": Permission.DELETE})
    stored = shelf.create({"object_name": "x", "acl_name": "read only"})
    with pytest.raises(NotPermitted):
        shelf.change(stored.id, {"title": "x"})
    with pytest.raises(NotWritable):
        shelf.change(stored.id, {"acl_name": "public"}, JON)
    with pytest.raises(NotPermitted), shelf.database.begin() as cx:
        assigned_acls.assign(cx, shelf.repository, JON, stored.id, "public", shelf.now)
    shelf.change(stored.id, {"acl_name": "public"})
    with shelf.database.begin() as cx:
        assigned_acls.assign(cx, shelf.repository, MARTA, stored.id, "private", shelf.now)
    assert noted(shelf) == [(stored.id, "created"), (stored.id, "acl"), (stored.id, "acl")]
    with pytest.raises(UnknownObject):
        shelf.read(stored.id, JON)


def test_an_acl_the_caller_may_not_see_is_not_assigned(shelf: Shelf) -> None:
    shelf.acl("hidden", {"jon@demo": Permission.READ}, JON)
    stored = shelf.create({"object_name": "x"})
    with pytest.raises(UnknownAcl):
        shelf.change(stored.id, {"acl_name": "hidden"})


def test_an_administrator_gives_an_object_to_another(shelf: Shelf) -> None:
    stored = shelf.create({"object_name": "x"})
    shelf.change(stored.id, {"owner_name": "jon@demo"}, ADMIN)
    assert "owner" in [kind for _, kind in noted(shelf)]
    assert shelf.read(stored.id, JON)[1] == Permission.DELETE
    with pytest.raises(UnknownObject):
        shelf.read(stored.id)
    with pytest.raises(WrongValue):
        shelf.change(stored.id, {"owner_name": "nobody"}, ADMIN)


def test_the_owner_may_name_themselves_in_another_case(shelf: Shelf) -> None:
    stored = shelf.create({"object_name": "x", "owner_name": "MARTA@demo"})
    assert stored.owner == MARTA.id
    changed = shelf.change(stored.id, {"owner_name": "marta@DEMO", "title": "t"})
    assert (changed.owner, changed.properties) == (MARTA.id, {"title": ["t"]})


def test_content_comes_with_its_text_to_extract(shelf: Shelf) -> None:
    kept = shelf.store.put([b"first"])
    stored = shelf.create({"object_name": "x.txt", "a_content_type": "text/plain"}, content=kept)
    second = shelf.store.put([b"second"])
    with shelf.database.begin() as cx:
        job = queue.take(cx, shelf.now)
        assert job is not None
        assert (job.object_id, job.content_key, job.media_type) == (stored.id, kept.key, "text/plain")
        changed = objects.replace_content(cx, shelf.repository, MARTA, stored.id, second, "text/html", shelf.now)
        assert changed.freed == (kept.key,)
        assert not queue.finish(cx, job, "first", shelf.now)
        again = queue.take(cx, shelf.now)
        assert again is not None
        assert again.content_key == second.key
    assert (changed.content, changed.media_type) == (second, "text/html")
    assert noted(shelf) == [(stored.id, "created"), (stored.id, "content")]
    shelf.delete(stored.id)
    with shelf.database.begin() as cx:
        assert queue.take(cx, shelf.now + 10**9) is None


def test_another_media_type_has_the_text_read_again(shelf: Shelf) -> None:
    stored = shelf.create({"object_name": "x", "a_content_type": "text/plain"}, content=shelf.store.put([b"x"]))
    with shelf.database.begin() as cx:
        assert queue.take(cx, shelf.now) is not None
    shelf.change(stored.id, {"a_content_type": "text/html"})
    with shelf.database.begin() as cx:
        job = queue.take(cx, shelf.now + 1)
    assert job is not None
    assert job.media_type == "text/html"


def test_a_folder_has_no_content_and_stands_in_a_cabinet_or_folder(shelf: Shelf) -> None:
    cabinet = shelf.create({"object_name": "c"}, type_name="cabinet")
    document = shelf.create({"object_name": "d"})
    with pytest.raises(WrongValue):
        shelf.create({"object_name": "f"}, type_name="folder")
    with pytest.raises(WrongValue):
        shelf.create({"object_name": "c2"}, type_name="cabinet", folder_id=cabinet.id)
    with pytest.raises(UnknownObject):
        shelf.create({"object_name": "x"}, folder_id=document.id)
    with pytest.raises(WrongValue), shelf.database.begin() as cx:
        objects.replace_content(cx, shelf.repository, MARTA, cabinet.id, shelf.store.put([b"x"]), "", shelf.now)


def test_a_folder_is_deleted_when_it_is_empty(shelf: Shelf) -> None:
    cabinet = shelf.create({"object_name": "c"}, type_name="cabinet")
    inside = shelf.create({"object_name": "d"}, folder_id=cabinet.id)
    with pytest.raises(InUse):
        shelf.delete(cabinet.id)
    shelf.delete(inside.id)
    assert shelf.delete(cabinet.id).position is not None
    assert noted(shelf)[-2:] == [(inside.id, "deleted"), (cabinet.id, "deleted")]
    with pytest.raises(UnknownObject):
        shelf.read(cabinet.id)


@pytest.mark.slow
def test_a_folder_into_which_something_is_being_put_is_not_deleted(shelf: Shelf) -> None:
    cabinet = shelf.create({"object_name": "c"}, type_name="cabinet")
    view, tried = shelf.view(MARTA), threading.Event()
    refused: list[InUse] = []

    def delete() -> None:
        tried.set()
        try:
            shelf.delete(cabinet.id)
        except InUse as refusal:
            refused.append(refusal)

    deleting = threading.Thread(target=delete, daemon=True)
    with shelf.database.begin() as cx:
        given: dict[str, Given] = {"object_name": "d"}
        inside = creation.create(cx, view, "document", given, cabinet.id, None, 0)
        deleting.start()
        assert tried.wait(PATIENCE)
        deleting.join(0.3)
    deleting.join(PATIENCE)
    assert len(refused) == 1
    assert shelf.read(inside.id)[0].folder_id == cabinet.id


def test_a_list_shows_by_name_what_the_caller_may_browse(shelf: Shelf) -> None:
    cabinet = shelf.create({"object_name": "c", "acl_name": "public"}, type_name="cabinet")
    made = [shelf.create({"object_name": name}, folder_id=cabinet.id) for name in ("b", "a", "c", "d")]
    shelf.change(made[2].id, {"acl_name": "private"})
    folder = shelf.create({"object_name": "e"}, type_name="folder", folder_id=cabinet.id)

    def listed(principals: Principals, type_name: str = "document", offset: int = 0, limit: int = 10) -> list[str]:
        with shelf.database.read() as cx:
            folder = Folder(shelf.view(principals), cabinet.id, type_name)
            found = lists.object_page(cx, folder, Stretch(None, offset, limit))
            counted = lists.count_objects(cx, folder)
        assert offset or counted == len(found)
        return [one.stored.name for one in found]

    assert listed(JON) == ["a", "b", "d"]
    assert listed(MARTA) == listed(ADMIN) == ["a", "b", "c", "d"]
    assert listed(Principals("MARTA@DEMO")) == ["a", "b", "c", "d"]
    assert listed(MARTA, offset=1, limit=2) == ["b", "c"]
    assert listed(MARTA, "folder") == [folder.name]
    assert listed(MARTA, "sysobject") == ["a", "b", "c", "d", "e"]
    with shelf.database.read() as cx:
        top = lists.object_page(cx, Folder(shelf.view(JON), None, "cabinet"), Stretch(None, 0, 10))
    assert [one.stored.id for one in top] == [cabinet.id]


def test_every_object_is_read_once_in_order(shelf: Shelf) -> None:
    made = [shelf.create({"object_name": str(n)}).id for n in range(5)]
    found: list[str] = []
    after = 0
    with shelf.database.read() as cx:
        while batch := inventory.next_objects(cx, shelf.repository.id, after, 2):
            found += [stored.id for stored in batch]
            after = batch[-1].seq
        assert inventory.rows(cx, shelf.repository.id, [*made, "0900000000000000"]).keys() == set(made)
    assert found == made


@pytest.mark.only("sqlite", "PostgreSQL plans by the rows there are.")
def test_objects_and_texts_are_looked_up_however_many_there_are(shelf: Shelf) -> None:
    kept = shelf.store.put([b"12345"])
    ids = [shelf.create({"object_name": "x"}, content=kept).id, *(f"{number:016x}" for number in range(24))]
    plans = steps(shelf.database, lambda cx: (inventory.rows(cx, shelf.repository.id, ids), queue.text_of(cx, ids)))
    assert [step.partition("(")[2] for _, looked_up in plans for step in looked_up] == ["id=?)", "object_id=?)"]


def test_many_are_made_as_one_is(shelf: Shelf) -> None:
    cabinet = shelf.create({"object_name": "c"}, type_name="cabinet")
    given = {"object_name": "a", "title": "t", "a_content_type": "text/plain"}
    alone = shelf.create(given, folder_id=cabinet.id)
    contents = [shelf.store.put([text]) for text in (b"one", b"two", b"three")]
    wanted = [
        creation.NewObject("document", given, cabinet.id),
        creation.NewObject("document", given, cabinet.id, contents[0], ExtractedText("one")),
        creation.NewObject("document", given, cabinet.id, contents[1], ExtractedText(" ", "Nothing.")),
        creation.NewObject("document", given, None, contents[2]),
    ]
    with shelf.database.begin() as cx:
        made = creation.create_all(cx, shelf.view(MARTA), wanted, alone.created)
    before = len(noted(shelf)) - len(made)
    with shelf.database.read() as cx:
        kept = inventory.rows(cx, shelf.repository.id, [each.id for each in made])
        assert {each.id: msgspec.structs.replace(each, position=None) for each in made} == kept
        assert queue.text_of(cx, list(kept)) == {made[1].id: "one"}
        states = [queue.status(cx, each.id) for each in made]
        lines = changes.after(cx, shelf.repository.id, START, 100)[before:]
    assert [state.state for state in states] == ["empty", "done", "no-text", "waiting"]
    assert states[2].reason == "Nothing."
    assert [(line.object_id, line.kind, line.position) for line in lines] == [
        (each.id, "created", each.position) for each in made
    ]
    same = msgspec.structs.replace(made[0], seq=alone.seq, id=alone.id, position=alone.position)
    assert same == alone
    assert made[3].folder_id is None
    after = shelf.create(given)
    assert after.seq == made[-1].seq + 1


def test_of_many_none_is_made_when_one_may_not_be(shelf: Shelf) -> None:
    cabinet = shelf.create({"object_name": "c"}, type_name="cabinet")
    before = noted(shelf)
    for folder_id, name, refusal in ((cabinet.id, "b", UnknownObject), (None, " ", WrongValue)):
        wanted = [
            creation.NewObject("document", {"object_name": "a"}),
            creation.NewObject("document", {"object_name": name}, folder_id),
        ]
        with pytest.raises(refusal), shelf.database.begin() as cx:
            creation.create_all(cx, shelf.view(JON), wanted, shelf.now)
    assert noted(shelf) == before


def test_values_spell_out_what_can_be_searched(shelf: Shelf) -> None:
    kept = shelf.store.put([b"12345"])
    stored = shelf.create({"object_name": "x", "title": "t", "a_content_type": "text/plain"}, content=kept)
    assert inventory.values(stored, shelf.catalogue(), "private") == {
        "object_name": ["x"],
        "title": ["t"],
        "a_content_type": ["text/plain"],
        "a_content_date": [shelf.now],
        "owner_name": ["Marta@demo"],
        "acl_name": ["private"],
        "r_object_id": [stored.id],
        "r_object_type": ["document"],
        "r_creation_date": [shelf.now],
        "r_creator_name": ["Marta@demo"],
        "r_modify_date": [shelf.now],
        "r_modifier": ["Marta@demo"],
        "r_full_content_size": [5],
        "r_version_label": ["1.0", "CURRENT"],
        "i_chronicle_id": [stored.id],
        "i_latest_flag": [True],
    }


@pytest.mark.slow
def test_a_folder_with_immensely_many_ways_up_is_shown_in_little_memory(shelf: Shelf) -> None:
    """Each of 144 folders lies in all twelve of the level above, and its paths fill what may be shown."""
    view = shelf.view(MARTA)
    with shelf.database.begin() as cx:
        level = [creation.create(cx, view, "cabinet", {"object_name": "top"}, None, None, shelf.now)]
        for _ in range(12):
            new = [NewObject("folder", {"object_name": f"{n:0200}"}, level[0].id) for n in range(12)]
            above = [folder.id for folder in level]
            level = [
                objects.put_into_folders(cx, each, MARTA, above, shelf.now)
                for each in creation.create_all(cx, view, new, shelf.now)
            ]
        paths.ancestries(cx, view, level[:1])
        tracemalloc.start()
        place = paths.ancestries(cx, view, level[:1])[level[0].id]
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert len(place.folder_ids) == 1 + 11 * 12 + 1
    assert len(set(place.paths)) == len(place.paths) == paths.MOST_CHARACTERS // len(place.paths[0])
    assert peak < 2_000_000

"""The law of folders: whatever is linked, moved, copied, deleted and restored, the graph is that of a plain model."""

import random
from pathlib import Path

import pytest

from muniment.database.connections import Database
from muniment.ground.clock import Instant
from muniment.repository.refusals import InUse, UnknownObject, WrongValue
from muniment.repository.store.filters.cursors import Stretch
from muniment.repository.store.objects import inventory, wastebasket
from muniment.repository.store.objects.contents import usage
from muniment.repository.store.objects.contents.usage import StorageQuota
from muniment.repository.store.objects.decisions import copying, moving, restoring, subtrees
from muniment.repository.store.objects.folders import filing, folders, paths
from muniment.repository.store.objects.listing import lists
from muniment.repository.store.objects.listing.lists import Folder
from muniment.repository.store.objects.table import StoredObject
from tests.shelf import MARTA, Shelf

NAMES = ["a", "b", "a/b", "c\\", "d"]


class Model:
    """What the graph must be: the name and the folders of each object, the first folder first."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.parents: dict[str, list[str]] = {}
        self.holds: set[str] = set()
        self.made: list[str] = []
        self.discarded: dict[str, dict[str, tuple[str, list[str]]]] = {}

    def add(self, stored: StoredObject) -> None:
        self.names[stored.id], self.parents[stored.id] = stored.name, list(stored.folder_ids)
        self.made.append(stored.id)
        if stored.id.startswith(("0b", "0c")):
            self.holds.add(stored.id)

    def above(self, object_id: str) -> set[str]:
        return {object_id}.union(*(self.above(parent) for parent in self.parents[object_id]))

    def below(self, object_id: str) -> set[str]:
        return {other for other in self.names if object_id in self.above(other)}

    def members(self, folder_id: str) -> list[str]:
        found = [each for each, parents in self.parents.items() if folder_id in parents]
        return sorted(found, key=lambda each: (self.names[each], self.made.index(each)))

    def paths(self, folder_id: str) -> set[str]:
        own = paths.write(self.names[folder_id])
        return {path + own for each in self.parents[folder_id] for path in self.paths(each)} or {own}

    def put(self, object_id: str, places: list[str]) -> bool:
        wrong = len(set(places)) < len(places) or any(object_id in self.above(place) for place in places)
        if wrong or (object_id in self.holds and not places):
            return False
        self.parents[object_id] = places
        return True

    def delete(self, object_id: str, *, non_empty: bool, all_links: bool) -> bool:
        if self.members(object_id) and not non_empty:
            return False
        going = {object_id}
        while more := {
            each
            for each, parents in self.parents.items()
            if each not in going and parents and (going & set(parents) if all_links else going >= set(parents))
        }:
            going |= more
        self.discarded[object_id] = {each: (self.names.pop(each), self.parents.pop(each)) for each in going}
        for each, parents in self.parents.items():
            self.parents[each] = [parent for parent in parents if parent not in going]
        return True

    def restore(self, object_id: str) -> bool:
        discarded = self.discarded[object_id]
        left = [each for each in discarded[object_id][1] if each in self.names]
        if discarded[object_id][1] and not left:
            return False
        for each, (name, parents) in self.discarded.pop(object_id).items():
            self.names[each] = name
            self.parents[each] = [parent for parent in parents if parent in self.names or parent in discarded]
        return True


class Play:
    """One random life of a repository, on both sides."""

    def __init__(self, shelf: Shelf, chance: random.Random) -> None:
        self.shelf, self.chance, self.model = shelf, chance, Model()
        for name in ("one", "two"):
            self.model.add(shelf.create({"object_name": name}, MARTA, "cabinet"))

    def step(self) -> None:
        chance, model, shelf = self.chance, self.model, self.shelf
        folder_ids = [each for each in model.made if each in model.names and each in model.holds]
        filed = [each for each in model.made if each in model.names and not each.startswith("0c")]
        what = chance.choice(
            ("make", "make", "make", "link", "link", "move", "unlink", "name", "delete", "restore", "copy")
        )
        view = shelf.view(MARTA)
        shelf.now += 1
        if what == "make" or not filed:
            kind = chance.choice(("folder", "folder", "document"))
            made = shelf.create({"object_name": chance.choice(NAMES)}, MARTA, kind, chance.choice(folder_ids))
            model.add(made)
            return
        one, place = chance.choice(filed), chance.choice(folder_ids)
        present = list(model.parents[one])
        if what == "name":
            model.names[one] = chance.choice(NAMES)
            shelf.change(one, {"object_name": model.names[one]})
        elif what == "link":
            done = model.put(one, [*present, place])
            self.decide(done, WrongValue, lambda cx: moving.link(cx, view, one, place, shelf.now))
        elif what == "move" and present:
            former = chance.choice(present)
            done = place == former or model.put(one, [place if each == former else each for each in present])
            self.decide(done, WrongValue, lambda cx: moving.move(cx, view, one, former, place, shelf.now))
        elif what == "unlink" and present:
            former = chance.choice(present)
            done = model.put(one, [each for each in present if each != former])
            self.decide(done, WrongValue, lambda cx: moving.unlink(cx, shelf.repository, MARTA, one, former, shelf.now))
        elif what == "delete":
            non_empty, all_links = chance.random() < 0.7, chance.random() < 0.3
            done = model.delete(one, non_empty=non_empty, all_links=all_links)
            most = 10_000 if non_empty else 0
            self.decide(
                done,
                InUse,
                lambda cx: subtrees.delete(
                    cx, shelf.repository, MARTA, one, shelf.now, most, all_links=all_links, keep_days=9
                ),
            )
        elif what == "restore" and model.discarded:
            gone = chance.choice(sorted(model.discarded))
            done = model.restore(gone)
            self.decide(done, WrongValue, lambda cx: restoring.restore(cx, view, gone, "", shelf.now))
        elif what == "copy" and len(model.names) < 60:
            self.copy(one, place)

    def decide(self, done: bool, refusal: type[Exception], decision: object) -> None:
        assert callable(decision)
        if done:
            with self.shelf.database.begin() as cx:
                decision(cx)
            return
        with pytest.raises(refusal), self.shelf.database.begin() as cx:
            decision(cx)

    def copy(self, one: str, place: str) -> None:
        view, model = self.shelf.view(MARTA), self.model
        originals = model.below(one)
        with self.shelf.database.begin() as cx:
            sources = copying.lock_originals(cx, view, one, 1000)
            root = copying.copy(cx, view, sources, place, self.shelf.now, StorageQuota())
            assert {each.id for each in sources} == originals
            every = inventory.next_objects(cx, self.shelf.repository.id, 0, 10_000)
        new = [each for each in every if each.id not in model.names]
        assert len(new) == len(originals)
        assert root.folder_ids == [place]
        for each in new:
            model.add(each)
        assert sorted(map(model.names.__getitem__, originals)) == sorted(each.name for each in new)
        links = sum(len(set(model.parents[each]) & originals) for each in originals if each != one)
        assert sum(len(each.folder_ids) for each in new) == links + 1

    def check(self) -> None:
        model, view = self.model, self.shelf.view(MARTA)
        with self.shelf.database.read() as cx:
            rows = {each.id: each for each in inventory.next_objects(cx, view.repository.id, 0, 10_000)}
            assert {each: (row.name, set(row.folder_ids)) for each, row in rows.items()} == {
                each: (model.names[each], set(model.parents[each])) for each in model.names
            }
            for each, row in rows.items():
                model.parents[each] = list(row.folder_ids)
            held = [rows[each] for each in rows if each in model.holds]
            above = paths.ancestries(cx, view, held)
            for folder in held:
                listed, after = [], None
                while page := lists.object_page(cx, Folder(view, folder.id, "sysobject"), Stretch(after, 0, 3)):
                    listed += [each.stored.id for each in page[:2]]
                    after = page[min(1, len(page) - 1)].place
                    if len(page) < 3:
                        listed += [each.stored.id for each in page[2:]]
                        break
                assert listed == model.members(folder.id)
                assert lists.count_objects(cx, Folder(view, folder.id, "sysobject")) == len(listed)
                below = {each for each in model.below(folder.id) if each in model.holds}
                assert folders.descendants(cx, view, [folder.id], 10_000) == below
                assert filing.with_all_above(cx, [folder.id]) == model.above(folder.id)
                assert set(above[folder.id].folder_ids) == model.above(folder.id)
                assert set(above[folder.id].paths) == model.paths(folder.id)
            assert usage.usage_by_owner(cx) == inventory.amounts_by_owner(cx)
            kept = wastebasket.deleted_page(cx, view.repository, MARTA, self.shelf.now, Stretch(None, 0, 1000))
            assert {each.discard.stored.id for each in kept} == set(model.discarded)


@pytest.mark.parametrize("seed", range(2))
def test_the_graph_of_folders_is_that_of_the_model(
    repository_db: Database, now: Instant, tmp_path: Path, seed: int
) -> None:
    shelf = Shelf(repository_db, tmp_path, now)
    play = Play(shelf, random.Random(seed))
    for number in range(60):
        play.step()
        if number % 5 == 4:
            play.check()
    with pytest.raises(UnknownObject), repository_db.begin() as cx:
        restoring.restore(cx, shelf.view(MARTA), "0b00000000000000", "", shelf.now)

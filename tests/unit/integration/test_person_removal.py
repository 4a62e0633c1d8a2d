"""The steps of a removal, on both databases and for whatever surface asks for them."""

from collections.abc import Collection
from pathlib import Path
from typing import Any, NoReturn

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import Database
from muniment.directory.entries import editing, entries, identities
from muniment.directory.entries.table import Entry
from muniment.directory.refusals import NameInUse, UnknownEntry
from muniment.ground.clock import Instant
from muniment.integration import guards, person_removal
from muniment.integration.person_removal import Departure, Holdings, OwnsElsewhere, SameReceiver
from muniment.repository.bulk import ownership
from muniment.repository.bulk.ownership import GiftCount
from muniment.repository.refusals import CheckedOut, IndexUnavailable, NotPermitted
from muniment.repository.store.objects import objects
from muniment.repository.store.objects.decisions import assigned_acls, checkouts
from muniment.repository.store.objects.properties.version import Lock
from muniment.repository.store.permissions.principals import Permission, Principals
from muniment.repository.store.relations import comments, relations
from muniment.repository.store.relations.relations import RelationDraft
from muniment.repository.store.repositories import Repository
from muniment.repository.store.saved import saved_searches, stored_results
from muniment.repository.store.saved.saved_searches import SavedDocument, SavedSearchQuota, SearchChange, WrittenNames
from tests.office import Office
from tests.shelf import Shelf


class NoIndex:
    """The index of a repository that no agent has ever followed."""

    def snapshot(self) -> NoReturn:
        raise IndexUnavailable("There is none.")

    def close(self) -> None:
        pass


class Watch:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.standing: list[str] = []

    def reach(self, repository: str, count: int) -> None:
        pass

    def index_stands_still(self, repository: str) -> None:
        self.standing.append(repository)


class Both:
    """An office and a shelf, where the repository asks the directory who bears a name."""

    def __init__(self, directory: Database, repository: Database, folder: Path, now: Instant) -> None:
        self.office, self.shelf, self.now = Office(directory, now), Shelf(repository, folder, now), now
        self.watch = Watch()

    def identify(self, names: Collection[str]) -> dict[str, str]:
        with self.office.db.read() as cx:
            return identities.identities_of(cx, self.office.names, names)

    def holdings(self, max_pending: int = 2000) -> Holdings:
        acting = Principals("admin@directory.admin", administrator=True, identify=self.identify)
        return Holdings(
            *(self.shelf.database, self.open_index, self.identify, acting, max_pending),
            {"repository.basic_client": "signing-in"},
        )

    def open_index(self, _repository: Repository) -> NoIndex:
        return NoIndex()

    def acting(self, user_id: str) -> Principals:
        with self.shelf.database.begin() as cx:
            return self.acting_in(cx, user_id)

    def acting_in(self, cx: Connection, user_id: str) -> Principals:
        key = ownership.key_of(cx, user_id, self.identify, self.now)
        return Principals(user_id, keys={user_id.lower(): key}, identify=self.identify)

    def remove(self, user_id: str, give_to: str = "", max_pending: int = 2000) -> Departure:
        return person_removal.remove(
            self.office.db,
            self.holdings(max_pending),
            self.office.names,
            "user",
            user_id,
            lambda: self.now,
            self.watch,
            give_to=give_to,
        )


@pytest.fixture
def both(directory_db: Database, repository_db: Database, tmp_path: Path, now: Instant) -> Both:
    return Both(directory_db, repository_db, tmp_path, now)


def test_what_a_user_owns_is_given_before_they_are_removed(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ownership, "_AT_A_TIME", 2)
    bob = both.acting("bob@People")
    ids = {both.shelf.create({"object_name": f"plan {number}"}, bob).id for number in range(5)}
    with both.shelf.database.begin() as cx:
        saved = saved_searches.add(
            *(cx, both.shelf.repository.id, "search", SearchChange("his")),
            SavedDocument("json", WrittenNames("", "", ""), b"{}"),
            *(bob, SavedSearchQuota(10, 1000), both.now),
        )
        stored_results.keep_results(cx, saved.id, bob.key, "[]", both.now)
    departure = both.remove("bob@People", "alice@People")
    assert departure.gifts == [ownership.GiftCount("demo", 5, 0, 1)]
    assert departure.belongings == ownership.Belongings(0, 0, 0, 0)
    alice = both.acting("alice@People")
    assert {both.shelf.read(object_id, alice)[0].owner_key for object_id in ids} == {alice.key}
    with both.shelf.database.read() as cx:
        found = saved_searches.find(cx, both.shelf.repository.id, "search", saved.id, alice)
        assert found.owner_key == alice.key
        assert stored_results.size(cx, bob.key) == 0
    with both.office.db.read() as cx, pytest.raises(UnknownEntry):
        entries.find_user(cx, both.office.names, "bob@People")


def test_comments_and_relations_stay_with_who_made_them(both: Both) -> None:
    bob, repository = both.acting("bob@People"), both.shelf.repository
    plan = both.shelf.create({"object_name": "plan"}, bob)
    with both.shelf.database.begin() as cx:
        comment = comments.add(cx, repository, plan.id, "mine", bob, both.now, 10)
        relations.add(cx, repository, RelationDraft("peer", plan.id, plan.id), bob, both.now, 10)
    departure = both.remove("bob@People", "alice@People")
    assert departure.belongings == ownership.Belongings(0, 0, 0, 0, 1, 1)
    alice = both.acting("alice@People")
    with both.shelf.database.begin() as cx:
        assert comments.find(cx, repository, comment.id, alice).author == "bob@People"
        with pytest.raises(NotPermitted):
            comments.remove(cx, repository, comment.id, alice)
    with both.office.db.begin() as cx:
        editing.add_user(cx, both.office.partition, "bob", both.now)
    both.shelf.acl("all", {"world": Permission.DELETE}, alice)
    with both.shelf.database.begin() as cx:
        later = both.acting_in(cx, "bob@People")
        assigned_acls.assign(cx, repository, alice, plan.id, "all", both.now)
        with pytest.raises(NotPermitted):
            comments.remove(cx, repository, comment.id, later)
        comments.remove(cx, repository, comment.id, both.holdings().acting)


def test_a_later_bearer_of_the_name_inherits_nothing(both: Both) -> None:
    bob = both.acting("bob@People")
    plan = both.shelf.create({"object_name": "plan"}, bob)
    with both.shelf.database.begin() as cx:
        checkouts.check_out(cx, both.shelf.repository, bob, plan.id, both.now)
    both.shelf.acl("readers", {"bob@People": Permission.READ}, both.acting("alice@People"))
    departure = both.remove("bob@People")
    assert (departure.belongings.objects, departure.belongings.checkouts, departure.named_by) == (1, 1, 1)
    with both.office.db.begin() as cx:
        editing.add_user(cx, both.office.partition, "bob", both.now)
    later = both.acting("bob@People")
    assert later.key != bob.key
    administrator = Principals("root@demo", administrator=True)
    with both.shelf.database.begin() as cx:
        held = objects.read(cx, both.shelf.repository, plan.id, administrator)[0]
        assert held.version.lock == Lock(bob.id, bob.key, both.now)
        with pytest.raises(CheckedOut):
            objects.refuse_others(held, later)
        checkouts.cancel(cx, both.shelf.repository, administrator, plan.id, both.now)
    assert both.shelf.read(plan.id, Principals("root@demo", administrator=True))[0].owner_key == bob.key


def test_a_removal_that_is_refused_changes_nothing(both: Both) -> None:
    for receiver, refusal in (
        ("BOB@people", SameReceiver),
        ("nobody@People", UnknownEntry),
        ("staff@People", UnknownEntry),
    ):
        with pytest.raises(refusal):
            both.remove("bob@People", receiver)
    with pytest.raises(OwnsElsewhere):
        person_removal.remove(
            both.office.db,
            None,
            both.office.names,
            "user",
            "bob@People",
            lambda: both.now,
            both.watch,
            give_to="alice@People",
        )
    with both.office.db.read() as cx:
        assert entries.find_user(cx, both.office.names, "bob@People").live
    person_removal.remove(both.office.db, None, both.office.names, "user", "bob@People", lambda: both.now)


def test_a_removal_leaves_a_user_who_got_the_name_during_the_gift(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    bob = both.acting("bob@People")
    plan = both.shelf.create({"object_name": "plan"}, bob)

    give = person_removal.give

    def gift(*arguments: Any) -> list[GiftCount]:
        monkeypatch.undo()
        both.remove("bob@People")
        with both.office.db.begin() as cx:
            editing.add_user(cx, both.office.partition, "bob", both.now)
        both.shelf.create({"object_name": "hers"}, both.acting("bob@People"))
        return give(*arguments)

    monkeypatch.setattr(person_removal, "give", gift)
    with pytest.raises(UnknownEntry, match="bob@People was removed meanwhile"):
        both.remove("BOB@people", "alice@People")
    with both.office.db.read() as cx:
        assert entries.find_user(cx, both.office.names, "bob@People").id != both.office.bob.id
    assert both.shelf.read(plan.id, both.holdings().acting)[0].owner == "alice@People"
    with both.shelf.database.read() as cx:
        assert ownership.belongings(cx, bob.key).objects == 0
        assert ownership.belongings(cx, both.acting("bob@People").key).objects == 1


def test_a_gift_goes_on_where_no_index_follows(both: Both) -> None:
    bob = both.acting("bob@People")
    for number in range(6):
        both.shelf.create({"object_name": f"plan {number}"}, bob)
    both.remove("bob@People", "alice@People", max_pending=8)
    assert both.watch.standing == ["demo"]


def test_a_user_whom_a_repository_knows_keeps_their_name(both: Both) -> None:
    both.acting("bob@People")

    def rename(entry: Entry, name: str) -> str:
        with both.office.db.begin() as cx:
            return guards.rename(cx, both.shelf.database.read, both.office.names, entry, name, both.now, {}).name

    with pytest.raises(NameInUse, match="A repository knows bob@People"):
        rename(both.office.bob, "robert")
    assert rename(both.office.alice, "alicia") == "alicia"
    with both.shelf.database.read() as cx:
        assert cx.execute(sa.text("SELECT COUNT(*) FROM bearers")).scalar() == 1

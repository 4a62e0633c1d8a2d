"""Random histories of people who come, go and come again under one name: nobody sees what another was given."""

import itertools
from collections.abc import Collection, Mapping

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.engine import Connection

from muniment.database.connections import Database
from muniment.ground.clock import Instant
from muniment.repository.refusals import UnknownObject
from muniment.repository.store import repositories
from muniment.repository.store.objects import objects
from muniment.repository.store.objects.decisions import assigned_acls, creation
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.types import object_types
from muniment.repository.store.permissions import acls, name_keys
from muniment.repository.store.permissions.principals import Permission, Principals
from tests.properties.lengths import examples

_numbers = itertools.count(1)
NAMES = ("bob", "eve", "team")
KINDS = ("add", "remove", "prove", "own", "grant", "send back")

STEPS = st.lists(st.tuples(st.sampled_from(KINDS), st.sampled_from(NAMES)), min_size=3, max_size=25)


class Model(msgspec.Struct):
    """What should be: who bore each name, who is there, and whom each document is for."""

    borne: dict[str, list[str]] = {}
    present: dict[str, str] = {}
    waiting: dict[str, list[str]] = {}
    open_to: dict[str, set[str]] = {}

    def add(self, name: str, identity: str) -> None:
        """Somebody gets the name; the first gets what waited for it."""
        first = name not in self.borne
        self.borne.setdefault(name, []).append(identity)
        self.present[name] = identity
        if first:
            for document in self.waiting.pop(name, []):
                self.open_to[document].add(identity)

    def grant(self, name: str, document: str) -> None:
        """A document is opened to whoever bears the name; to nobody when its bearers are gone."""
        if name in self.present:
            self.open_to[document].add(self.present[name])
        elif name not in self.borne:
            self.waiting.setdefault(name, []).append(document)


class House:
    """A repository, and beside it a directory as a table of names."""

    def __init__(self, database: Database, now: Instant) -> None:
        self.database = database
        self.now = now
        self.number = next(_numbers)
        self.there: dict[str, str] = {}
        with database.begin() as cx:
            self.repository = repositories.add(cx, f"house {self.number} {id(self)}", "0", "", now)
            acls.initialise(cx, self.repository.id, now)
            self.catalogue = object_types.catalogue(cx, self.repository.id)

    def name(self, word: str) -> str:
        """Name somebody whom no other example knows."""
        return f"{word}-{self.number}-{id(self)}@staff"

    def identify(self, names: Collection[str]) -> Mapping[str, str]:
        """Say who bears these names."""
        return {name: self.there[name] for name in names if name in self.there}

    def caller(self, name: str) -> Principals:
        """Give whoever bears the name, as tokeninfo shows them; ``team`` is a group of one."""
        if name == self.name("team"):
            member = self.name(f"member of {self.there[name]}")
            known = {member: f"member of {self.there[name]}", name: self.there[name]}
            return Principals(member, frozenset({name}), identities=known, identify=self.identify)
        return Principals(name, identities={name: self.there[name]}, identify=self.identify)

    def proven(self, cx: Connection, name: str) -> Principals:
        """Let them make a request."""
        caller = self.caller(name)
        return caller.with_keys(name_keys.bind(cx, caller.names, self.now))

    def remove(self, cx: Connection, name: str) -> None:
        """Remove them as the command does: their name is bound first."""
        name_keys.of_names(cx, [name], self.identify, self.now)
        del self.there[name]

    def document(self, cx: Connection, owner: Principals) -> str:
        """Make a document that only its owner sees."""
        wanted = creation.NewObject("document", {"object_name": "plan"})
        return creation.create_all(cx, RepositoryView(self.repository, self.catalogue, owner), [wanted], self.now)[0].id

    def sees(self, name: str, document: str) -> bool:
        """Whether they may see it, read without a binding."""
        with self.database.read() as cx:
            caller = self.caller(name)
            known = caller.with_keys(name_keys.keys(cx, caller.names))
            try:
                objects.read(cx, self.repository, document, known)
            except UnknownObject:
                return False
            return True


class History:
    """A house, what should be seen in it, and what happens to both at once."""

    def __init__(self, database: Database, now: Instant) -> None:
        self.house, self.model = House(database, now), Model()
        self.administrator = Principals(
            f"root-{self.house.number}@staff", administrator=True, identify=self.house.identify
        )
        self.lists: dict[str, acls.Acl] = {}

    def take(self, cx: Connection, kind: str, word: str, number: int) -> None:
        """Take one step, if it can be taken."""
        house, name = self.house, self.house.name(word)
        present = name in house.there
        if kind == "add" and not present:
            house.there[name] = f"{name} {number}"
            self.model.add(name, house.there[name])
        elif kind == "prove" and present:
            house.proven(cx, name)
        elif kind == "own" and present and word != "team":
            self.model.open_to[house.document(cx, house.proven(cx, name))] = {house.there[name]}
        elif kind == "remove" and present:
            house.remove(cx, name)
            del self.model.present[name]
        elif kind == "grant":
            self._grant(cx, name, number)
        elif kind == "send back":
            self._send_back(cx)

    def check(self) -> None:
        """See that everybody sees what is theirs, and nothing else."""
        for document, open_to in self.model.open_to.items():
            for there, identity in self.house.there.items():
                assert self.house.sees(there, document) == (identity in open_to), (there, document)

    def _grant(self, cx: Connection, name: str, number: int) -> None:
        house = self.house
        document, entries = house.document(cx, self.administrator), {name: Permission.READ}
        made = acls.add(cx, house.repository.id, f"list {number}", self.administrator, entries, house.now)
        assigned_acls.assign(cx, house.repository, self.administrator, document, made.shown_id, house.now)
        self.lists[document] = made
        self.model.open_to[document] = set()
        self.model.grant(name, document)

    def _send_back(self, cx: Connection) -> None:
        for one in self.lists.values():
            shown = acls.shown_entries(cx, one, self.administrator)
            assert len(shown) == 1
            acls.change(cx, one, self.administrator, shown, self.house.now)


@settings(
    max_examples=examples(20, 400),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(STEPS)
def test_nobody_inherits_anything(repository_db: Database, now: Instant, steps: list[tuple[str, str]]) -> None:
    """failures C8"""
    history = History(repository_db, now)
    for number, (kind, word) in enumerate(steps):
        with repository_db.begin() as cx:
            history.take(cx, kind, word, number)
        history.check()

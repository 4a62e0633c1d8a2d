"""Every list of the directory by REST takes the same of 10 entries and of 1,000: statements, and rows read.

The lists are those of the table of addresses. What PostgreSQL does at a large size is measured as it plans for one.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar
from unittest.mock import patch

import pytest
from sqlalchemy.engine import Connection

from bench import crowds
from muniment.database.positions import START
from muniment.directory.administration import people
from muniment.directory.api.rest import addresses, paging
from muniment.directory.entries import changes, credentials, editing, entries, listing, memberships, resources
from muniment.directory.entries.listing import EntryPage, ListPlace, Which
from muniment.directory.entries.table import Entry
from muniment.directory.options import DirectoryOptions
from tests.interface.by_rest import Rest
from tests.plans import cost
from tests.scenes import Loop, Site, World
from tests.servers import Postgres, Sqlite

T = TypeVar("T")

FEW, MANY = 10, 1000
SIZE = 5
RARE = 12
"""So many roles there are, and fewer units: of what is rare PostgreSQL may mean to read all."""

MOST_STEPS = 10
"""So often a page goes on to look, until it has looked at ``SCANNED`` rows."""

LISTS: dict[str, dict[str, str]] = {
    "of a partition": {"path": "/users", "where_partition_name": "{partition}"},
    "of all": {"path": "/users"},
    "of a unit": {"path": "/orgunits/{unit}/users"},
    "of a unit, as a filter": {"path": "/users", "where_location": "{unit}"},
    "enabled": {"path": "/users", "where_partition_name": "{partition}", "where_state": "enabled"},
    "disabled": {"path": "/users", "where_state": "disabled"},
    "beginning of names": {"path": "/users", "where_filter": "u0", "where_partition_name": "{partition}"},
    "beginning of an address": {"path": "/users", "where_filter": "{user}@example"},
    "beginning of many addresses": {"path": "/users", "where_filter": "u", "where_partition_name": "{partition}"},
    "beginning of a display name": {"path": "/users", "where_filter": "person {backwards}"},
    "beginning of a last name": {"path": "/users", "where_filter": "last {half}"},
    "anywhere": {"path": "/users", "where_filter": "*u", "where_partition_name": "{partition}"},
    "nobody": {"path": "/users", "where_filter": "nobody"},
    "groups": {"path": "/groups", "where_partition_name": "{partition}"},
    "roles": {"path": "/roles"},
    "members": {"path": "/groups/{everybody}/members"},
    "users among members": {"path": "/groups/{everybody}/users"},
    "groups among members": {"path": "/groups/{group}/groups"},
    "members of a role": {"path": "/roles/{role}/members"},
    "roles around a role": {"path": "/roles/{role}/roles"},
    "groups around a role": {"path": "/roles/{role}/memberof"},
    "users of a role": {"path": "/roles/{role}/users"},
    "groups of a role": {"path": "/roles/{role}/groups"},
    "groups around a user": {"path": "/users/{user}@{partition}/memberof"},
    "roles around a user": {"path": "/users/{user}@{partition}/roles"},
    "groups around a group": {"path": "/groups/{group}/memberof"},
    "roles around a group": {"path": "/groups/{group}/roles"},
    "units": {"path": "/orgunits", "where_partition_name": "{partition}"},
    "units of a unit": {"path": "/orgunits/{unit}/children"},
    "units around a unit": {"path": "/orgunits/{unit}/parents"},
    "roles of a unit": {"path": "/orgunits/{unit}/roles"},
    "partitions": {"path": "/partitions"},
    "partitions, as some programs write it": {"path": "/partition"},
    "resources": {"path": "/resources"},
    "access roles": {"path": "/accessroles"},
    "OAuth clients": {"path": "/oauthclients"},
    "a user": {"path": "/users/{user}@{partition}"},
    "a user by a bare name": {"path": "/users/{user}"},
    "a group of all": {"path": "/groups/{everybody}"},
    "who calls": {"path": "/currentuser"},
}
"""What is asked, with its parameters."""


QUESTIONS: dict[str, Callable[[Connection, "Grown"], object]] = {
    "groups of a user, however deep": lambda cx, grown: memberships.groups_of(cx, grown.find(cx).id),
    "roles and groups around an entry": lambda cx, grown: memberships.ids_above(cx, grown.find(cx)),
    "who administers": lambda cx, grown: memberships.administers(cx, grown.find(cx).id),
    "somebody administers": lambda cx, _: memberships.acting_in(cx, [entries.administrators(cx).id]),
    "who signs in": lambda cx, grown: credentials.find(cx, grown.options, grown.user, bare=True),
    "who is meant": lambda cx, grown: entries.find_meant(cx, grown.options, grown.user, "user"),
    "nobody is meant": lambda cx, grown: credentials.find(cx, grown.options, "nobody", bare=True),
    "changes": lambda cx, _: changes.after(cx, START, SIZE),
    "the last change": lambda cx, _: changes.latest(cx),
    "partitions, for the console": lambda cx, _: entries.partitions(cx),
    "resources, for the console": lambda cx, _: resources.all_resources(cx),
    "a user whom a group lets in": lambda cx, grown: grown.find_let_in(cx, "user", grown.user),
    "a group that lets its groups in": lambda cx, grown: grown.find_let_in(cx, "group", "g000000"),
    "a few members whom a resource lets in": lambda cx, grown: grown.choose(cx, "user", grown.few),
    "groups of a user that a resource lets in": lambda cx, grown: grown.choose(cx, "group", None, grown.user),
}
"""What else is asked of a directory, and by whom."""


class Grown:
    """What each list takes in a directory of ten people, and in the same after a thousand have come."""

    partition: str
    user: str
    unit: str
    few: Entry

    def __init__(self, world: World, site: Site) -> None:
        self.world, self.rest = world, Rest(site)
        self.options: DirectoryOptions = world.installation.settings.directory
        self.costs: dict[str, list[tuple[int, int]]] = {}
        resources_made = {users: (world.resource(), world.resource()) for users in (FEW, MANY)}
        with world.directory_db.begin() as cx:
            self.partitions = {
                users: editing.add_partition(cx, world.names, f"crowd-{users}", world.clock()) for users in (FEW, MANY)
            }
        for users, groups in ((FEW, 10), (MANY, 100)):
            self.by_group, self.by_partition = resources_made[users]
            self._fill(users, groups)
            for what in LISTS:
                self.ask(what)  # what a process reads once
                self.costs.setdefault(what, []).append(cost(world.directory_db, partial(self.ask, what)))
            for what, question in QUESTIONS.items():
                self.costs.setdefault(what, []).append(cost(world.directory_db, partial(self.read, question)))

    def _fill(self, users: int, groups: int) -> None:
        world, now = self.world, self.world.clock()
        partition = self.partitions[users]
        self.partition, self.user = partition.name, crowds.user_name(users // 2)
        crowds.add(world.directory_db, world.names, self.partition, users, groups, now)
        with world.directory_db.begin() as cx:
            unit = entries.unit_at(cx, partition, [crowds.UNIT])
            self.unit = entries.location(world.names, unit)
            for number in range(SIZE + 1):
                role = editing.add_role(cx, unit, f"clerks-{number}", now)
                names = [self.user, *map(crowds.user_name, range(SIZE))]
                clerks = [entries.find_user(cx, world.names, f"{name}@{self.partition}") for name in names]
                everybody = entries.find_group(cx, world.names, f"{crowds.EVERYBODY}@{self.partition}")
                memberships.add_members(cx, role, [everybody, *clerks])
            self.few = editing.add_group(cx, unit, "few", now)
            memberships.add_members(cx, self.few, clerks)
            resources.add_to_role(cx, self.by_group, everybody)
            resources.add_to_role(cx, self.by_partition, partition)

    def find_let_in(self, cx: Connection, kind: people.Kind, name: str) -> None:
        people.find(cx, self.world.names, self.by_group.id, kind, f"{name}@{self.partition}")

    def choose(self, cx: Connection, kind: people.Kind, group: Entry | None, member: str = "") -> None:
        members = [(self.find(cx), False)] if member else []
        chosen = people.choose(self.world.names, self.by_partition.id, kind, group, members)
        assert cx.execute(chosen.query).all()

    def find(self, cx: Connection) -> Entry:
        return entries.find_user(cx, self.world.names, f"{self.user}@{self.partition}")

    def read(self, question: Callable[[Connection, "Grown"], T]) -> T:
        with self.world.directory_db.read() as cx:
            return question(cx, self)

    def ask(self, what: str, **more: str) -> dict[str, Any]:
        values = {
            "partition": self.partition,
            "unit": self.unit,
            "user": self.user,
            "backwards": self.user[::-1],
            "half": self.user[::-2],
            "everybody": f"{crowds.EVERYBODY}@{self.partition}",
            "group": f"g000000@{self.partition}",
            "role": f"clerks-0@{self.partition}",
        }
        asked = {name: text.format(**values) for name, text in LISTS[what].items()} | {"page_size": str(SIZE)} | more
        return self.rest.done("GET", asked.pop("path"), params=asked)


@pytest.fixture(scope="module")
def grown(engine: Sqlite | Postgres, loop: Loop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grown]:
    folder = tmp_path_factory.mktemp("grown")
    folder.chmod(0o700)
    world = World(folder, engine.fresh("directory"), engine.fresh("repository"))
    site = Site(world, "neutral", loop)
    yield Grown(world, site)
    site.close()
    world.close()


def test_no_list_is_forgotten() -> None:
    pages = {
        row.path
        for row in addresses.ROWS
        if (shown := row.methods.get("GET")) and shown.answer and issubclass(shown.answer, paging.PageFields)
    }
    assert {_open(path) for path in pages} <= {_open(asked["path"]) for asked in LISTS.values()}


def _open(path: str) -> str:
    """Write the path without what its open parts are called."""
    return "/".join("{}" if part.startswith("{") else part for part in path.split("/"))


@pytest.mark.campaign_on("postgresql")
@pytest.mark.parametrize("what", [*LISTS, *QUESTIONS])
def test_a_list_takes_the_same_however_many_entries_there_are(grown: Grown, what: str) -> None:
    (few, few_rows), (many, many_rows) = grown.costs[what]
    assert many == few
    assert many_rows <= 1.2 * few_rows + RARE, (few_rows, many_rows)


def _page(cx: Connection, _grown: Grown, which: Which, after: ListPlace | None) -> EntryPage:
    return listing.page(cx, which, after, 50)


@pytest.mark.campaign_on("postgresql")
@pytest.mark.parametrize("text", ["u", "u*0", "person", "person*0"])
def test_a_late_page_of_a_filtered_list_takes_what_an_early_one_does(grown: Grown, text: str) -> None:
    which = Which("user", grown.partitions[MANY], pattern=text)
    costs: list[tuple[int, int]] = []
    after: ListPlace | None = None
    for number in range(18):
        read = partial(grown.read, partial(_page, which=which, after=after))
        if number in (1, 17):
            costs.append(cost(grown.world.directory_db, read))
        after = read().next
        assert after is not None
    (early, early_rows), (late, late_rows) = costs
    assert late == early
    assert late_rows <= 1.2 * early_rows + RARE, (early_rows, late_rows)


@pytest.mark.campaign_on("postgresql")
def test_what_is_hostile_is_answered_within_the_bounds_of_a_page(grown: Grown) -> None:
    """A filter that nothing matches or that is made of stars, a size of millions, and places nobody gave."""
    with patch.object(listing, "SCANNED", 100):
        for text in ("*nobody", "u*nobody", "*" * 1000, "*0" * 500, "%" * 1000, "_" * 1000):
            asked = {"where_filter": text, "where_partition_name": grown.partition, "page_size": str(SIZE)}
            statements, rows = cost(grown.world.directory_db, partial(grown.rest.done, "GET", "/users", params=asked))
            assert statements <= 4 * MOST_STEPS
            assert rows <= 50_000, text
    assert grown.ask("of all", page_size="1" * 18)["actualPageSize"] == paging.MOST
    cookie = grown.ask("of all")["nextPageCookie"]
    other = grown.ask("of a partition")["nextPageCookie"]
    forged = ("A" * 60_000, cookie[:-8] + "AAAAAA==", other, "\x00", "==", "é")
    wrong = [{"next_page_cookie": text} for text in forged]
    wrong += [{"where_filter": "a" * 1001}, {"page_size": "0"}, {"page_size": "1" * 19}, {"page_size": "-1"}]
    for parameters in wrong:
        assert grown.rest("GET", "/users", params=parameters).status_code == 400, parameters

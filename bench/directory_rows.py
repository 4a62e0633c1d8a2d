"""What does the directory's administration cost: its lists, however many people there are, new people, memberships?"""

import json
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import NamedTuple
from unittest.mock import patch
from urllib.parse import urlencode

import httpx

from bench import crowds, load, ours, page
from bench.load import Figures, Request, bearer
from bench.ours import CLIENT, FORM, MEMBER, PARTITION, Data, Site
from bench.page import Line, at_most
from bench.peers import postgres
from bench.processes import Program
from bench.run import Run
from muniment.database.audit import SYSTEM, acting
from muniment.directory.administration import decisions
from muniment.directory.entries import entries, memberships
from muniment.directory.options import DirectoryNames
from muniment.ground import clock

LIST, CREATE, MEMBERSHIP = "directory-list", "directory-create", "membership"
CREATE_POSTGRESQL, MEMBERSHIP_POSTGRESQL = f"{CREATE}-postgresql", f"{MEMBERSHIP}-postgresql"
LIST_GROWTH, LIST_GROWTH_POSTGRESQL = f"{LIST}-growth", f"{LIST}-growth-postgresql"

FLAT = at_most(1.2)
CREATE_MUST, CREATE_AIM = 500, 1000
MEANWHILE = at_most(5)
AUDITED = at_most(1.2)

_FEW, _FEW_GROUPS = 1_000, 100
_PAGE, _CLUBS = 20, 50
_CONNECTIONS = 16
_CHANGES = 200


class _Place(NamedTuple):
    """A data folder, and the programs that store its directory."""

    data: Data
    programs: list[Program]


def lists(run: Run) -> list[Line]:
    """Pages of users and of members, of 1,000 and of 100,000 people."""
    return _lists(run, LIST, run.size(100_000, 5_000), 1_000, _QUESTIONS[:3], min(run.seconds, 1))


def lists_growth(run: Run) -> list[Line]:
    """Every list, of 1,000 and of 1,000,000 people."""
    return _lists(run, LIST_GROWTH, run.size(1_000_000, 5_000), 10_000, _QUESTIONS, min(run.seconds, 2))


def lists_growth_postgresql(run: Run) -> list[Line]:
    """The same on PostgreSQL. Raises Missing."""
    with postgres.running() as running:
        seconds = min(run.seconds, 2)
        return _lists(run, LIST_GROWTH_POSTGRESQL, run.size(1_000_000, 5_000), 10_000, _QUESTIONS, seconds, running)


def creation(run: Run) -> list[Line]:
    """One POST a user, and tokeninfo meanwhile."""
    return _creation(run, CREATE, _Place(run.prepare(run.folder(CREATE) / "data"), []))


def creation_postgresql(run: Run) -> list[Line]:
    """The same on PostgreSQL. Raises Missing."""
    with _on_postgresql(run, CREATE_POSTGRESQL) as place:
        return _creation(run, CREATE_POSTGRESQL, place)


def membership(run: Run) -> list[Line]:
    """A membership that begins or ends, with its event and its line in the history of rights, and without both."""
    return _membership(run, MEMBERSHIP, run.prepare(run.folder(MEMBERSHIP) / "data"))


def membership_postgresql(run: Run) -> list[Line]:
    """The same on PostgreSQL. Raises Missing."""
    with _on_postgresql(run, MEMBERSHIP_POSTGRESQL) as place:
        return _membership(run, MEMBERSHIP_POSTGRESQL, place.data)


@contextmanager
def _on_postgresql(run: Run, row: str) -> Iterator[_Place]:
    with postgres.running() as running:
        yield _prepared(run, row, running)


def _prepared(run: Run, name: str, running: postgres.Running | None) -> _Place:
    if running is None:
        return _Place(run.prepare(run.folder(name) / "data"), [])
    overrides = []
    for half in ("directory", "repository"):
        host, port, database = running.database(f"{name}_{half}".replace("-", "_"))
        overrides.append(f"{half}_database=postgresql://postgres@{host}:{port}/{database}")
    return _Place(run.prepare(run.folder(name) / "data", *overrides), [running.program])


class _Question(NamedTuple):
    """What is asked of the directory, and what every answer holds."""

    work: str
    wanted: str
    ask: Callable[[Site, str], Request]


def _lists(
    run: Run,
    row: str,
    many: int,
    groups: int,
    questions: Sequence[_Question],
    seconds: float,
    running: postgres.Running | None = None,
) -> list[Line]:
    with ExitStack() as stack:
        sides = []
        for users, size in ((_FEW, _FEW_GROUPS), (many, groups)):
            began = time.monotonic()
            place = _prepared(run, f"{row}-{users}", running)
            ours.join_many(place.data, _CLUBS)
            crowds.fill(place.data, users, size)
            print(f"    {users:,} users in {size:,} groups in {time.monotonic() - began:.0f} s", flush=True)
            site = stack.enter_context(ours.serving(place.data))
            sides.append((site, administrator(site)))
        return [_flat(run, row, question, many, sides, seconds) for question in questions]


def _flat(
    run: Run, row: str, question: _Question, many: int, sides: Sequence[tuple[Site, str]], seconds: float
) -> Line:
    def ask(side: tuple[Site, str]) -> Figures:
        asked = question.ask(*side)
        side[0].ask(asked)  # what a million have just filled is cold
        return load.run([asked], [question.wanted], [side[0].program], seconds=seconds, connections=1)

    large, small = run.measure_in_turn(ask, sides[1], sides[0])
    return page.compared(
        row,
        f"{question.work}, {many:,} users, 1 client, p50",
        f"the same of {_FEW:,} users",
        [one.p50 for one in large],
        [one.p50 for one in small],
        unit=" ms",
        target=FLAT,
        our_cpu=page.cpu(one.cpu for one in large),
        their_cpu=page.cpu(one.cpu for one in small),
        remark=f"A page has {_PAGE} members at most; both servers run at one time.",
    )


def administrator(site: Site) -> str:
    """Sign an administrator in: a token for REST."""
    resource = DirectoryNames().administration_resource
    form = {
        "grant_type": "password",
        "client_id": CLIENT,
        "username": "admin@directory.admin",
        "password": site.data.secret,
        "scope": f"resource:{resource}",
    }
    answer = httpx.post(site.login, data=form, headers=dict([FORM]), verify=site.ca_file)
    return str(answer.raise_for_status().json()["access_token"])


def _list(work: str, path: str, wanted: str, **parameters: str) -> _Question:
    def ask(site: Site, token: str) -> Request:
        query = urlencode({"page_size": str(_PAGE), **parameters})
        return Request("GET", f"{site.base}/dirws/rest{path}?{query}", "", (bearer(token),))

    return _Question(work, wanted, ask)


_SOMEBODY = crowds.user_name(500)

_QUESTIONS = (
    _list("a page of users", "/users", '"users"', where_partition_name=PARTITION),
    _list("users by the beginning of a mail address", "/users", _SOMEBODY, where_filter=f"{_SOMEBODY}@example"),
    _list("a page of a group's members", f"/groups/{crowds.EVERYBODY}@{PARTITION}/members", '"users"'),
    _list("a user by a bare name", f"/users/{_SOMEBODY}", _SOMEBODY),
    _list("users of all partitions", "/users", '"users"'),
    _list("users of a unit who are enabled", "/users", '"users"', where_state="enabled"),
    _list("users by the beginning of a last name", "/users", '"users"', where_filter="last"),
    _list("users whose name holds a digit anywhere", "/users", '"users"', where_filter="*1"),
    _list("a page of groups", "/groups", '"groups"', where_filter="g00"),
    _list("the groups of a user", f"/users/{_SOMEBODY}@{PARTITION}/memberof", '"groups"'),
    _list(f"the groups of a user of {_CLUBS} groups", f"/users/{MEMBER}@{PARTITION}/memberof", '"groups"'),
    _list("a page of roles", "/roles", '"roles"'),
    _list("a page of units", "/orgunits", crowds.UNIT, where_partition_name=PARTITION),
    _list("a page of partitions", "/partitions", PARTITION),
    _list("a page of resources", "/resources", '"resourceName"'),
    _list("a page of access roles", "/accessroles", '"accessRoles"'),
    _list("a page of OAuth clients", "/oauthclients", CLIENT),
    _Question("sign-in", "access_token", lambda site, _: site.sign_in()),
    _Question(
        f"tokeninfo of a user of {_CLUBS} groups",
        "token_id",
        lambda site, _: site.tokeninfo(site.signed_in(MEMBER)["access_token"]),
    ),
)
"""The first three are in the default run."""


def _creation(run: Run, row: str, place: _Place) -> list[Line]:
    rates: list[Figures] = []
    idle: list[float] = []
    busy: list[float] = []
    seconds = min(run.seconds, 2)
    with ours.serving(place.data, "web.workers=1") as site:
        programs = [site.program, *place.programs]
        asked = _new_user(site, administrator(site))
        verify = site.tokeninfo(site.signed_in()["access_token"])
        numbers = iter(range(10_000_000, 2_000_000_000, 10_000_000))

        def create(length: float) -> Figures:
            return load.run(
                [asked],
                ["objectClass"],
                programs,
                seconds=length,
                connections=_CONNECTIONS,
                numbered=next(numbers),
            )

        def verified() -> float:
            return load.run([verify], ["token_id"], programs, seconds=seconds, connections=2).p99

        def flooded() -> None:
            with ThreadPoolExecutor(1) as threads:
                flood = threads.submit(create, seconds + 2)
                time.sleep(1)
                busy.append(verified())
                flood.result()

        create(2)
        run.interleaved(lambda: rates.append(create(seconds)))
        run.interleaved(flooded, lambda: idle.append(verified()))
    mine = statistics.median(one.rate for one in rates)
    return [
        Line(
            row=row,
            work=f"one POST a user with three attributes, durable, {_CONNECTIONS} connections, one worker",
            beside="",
            must=f">= {CREATE_MUST}/s",
            aim=f">= {CREATE_AIM}/s",
            met=mine >= CREATE_MUST,
            aimed=mine >= CREATE_AIM,
            figure=mine,
            ours=f"{mine:,.0f}/s",
            our_cpu=page.cpu(one.cpu for one in rates),
            remark=f"No password; each is an event as well; {load.percentiles(rates, [])}.",
        ),
        page.compared(
            row,
            "tokeninfo p99 while they are made",
            "its p99 on the idle server",
            busy,
            idle,
            unit=" ms",
            target=MEANWHILE,
            remark="2 connections verify as fast as they can; generators and server on the same two cores.",
        ),
    ]


def _new_user(site: Site, token: str) -> Request:
    values = {"mail": "new@example.org", "displayName": "Somebody New", "sn": "New"}
    body = {
        "userPartitionID": PARTITION,
        "name": "n%d",
        "values": [{"name": name, "values": [value]} for name, value in values.items()],
    }
    headers = (bearer(token), ("Content-Type", "application/json"))
    return Request("POST", f"{site.base}/dirws/rest/users", json.dumps(body), headers)


@acting(SYSTEM, clock.now)
def _membership(run: Run, row: str, data: Data) -> list[Line]:
    """Both sides change memberships in this process, in turn, each change in a transaction of its own."""
    opened = data.opened()
    names = opened.settings.directory.names
    with opened.database("directory") as database:
        with database.begin() as cx:
            people = entries.find_partition(cx, names, PARTITION)
            user = entries.find_user(cx, names, f"{ours.PERSON}@{PARTITION}")
            group = decisions.add_group(cx, names, f"measured@{PARTITION}", people, clock.now())

        def change(number: int) -> Callable[[], None]:
            def decide() -> None:
                verb = decisions.remove_members if number % 2 else decisions.add_members
                with database.begin() as cx:
                    verb(cx, group, [user], clock.now())

            return decide

        count = run.size(_CHANGES, 20)
        changes = [change(number) for number in range(count)]
        audited: list[tuple[float, float]] = []
        unaudited: list[tuple[float, float]] = []

        def silent() -> None:
            with patch.object(memberships, "_record"):
                unaudited.append(_times(changes))

        run.interleaved(lambda: audited.append(_times(changes)), silent)
    return [
        page.compared(
            row,
            "a membership begins or ends, durable",
            "the same without its event and its line in the history",
            [took for took, _ in audited],
            [took for took, _ in unaudited],
            unit=" ms",
            target=AUDITED,
            our_cpu=page.cpu(used for _, used in audited),
            their_cpu=page.cpu(used for _, used in unaudited),
            remark=f"{count} changes a round, one after the other, each in a transaction, in one process without HTTP.",
        )
    ]


def _times(changes: Sequence[Callable[[], None]]) -> tuple[float, float]:
    """Make the changes: the median of their times in ms, and the CPU ms of one."""
    times, before = [], time.process_time()
    for change in changes:
        began = time.perf_counter()
        change()
        times.append(1000 * (time.perf_counter() - began))
    return statistics.median(times), 1000 * (time.process_time() - before) / len(times)

"""The growth row: the same questions of a small data folder and of a large one, both served at one time."""

import itertools
import secrets
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import httpx
import sqlalchemy as sa

from bench import load, ours, page
from bench.load import Figures, Request, bearer
from bench.ours import Data, Site
from bench.page import Line, at_most
from bench.passages import passages, queries
from bench.run import Run
from muniment.database import connections
from muniment.directory.entries import editing, entries, resources
from muniment.directory.oauth import tokens
from muniment.ground import clock
from muniment.installation import initialise
from muniment.repository.store.objects import table

_MANY = 5_000
_CHARACTERS = 300


def growth(run: Run) -> list[Line]:
    """10,000 to 1,000,000 objects, 1,000 to 1,000,000 users, none to 1,000,000 expired tokens: times beside itself."""
    sizes = (10_000, 1_000_000) if not run.quick else (1_000, 5_000)
    users = (1_000, 1_000_000) if not run.quick else (100, 5_000)
    expired = (0, 1_000_000) if not run.quick else (0, 5_000)
    short = [text[:_CHARACTERS] for text in passages(sizes[0])]
    words = [pair for pair in queries(short) if len(pair) == 1]
    folders = []
    for size, people, dead in zip(sizes, users, expired, strict=True):
        began = time.monotonic()
        data = run.prepare(run.folder(f"growth-{size}") / "data")
        _add_users(data, people)
        _add_expired(data, dead)
        ours.fill(data, itertools.islice(itertools.cycle(short), size))
        print(
            f"    {size:,} objects, {people:,} users, {dead:,} tokens in {time.monotonic() - began:.0f} s", flush=True
        )
        folders.append(data)
    with ours.serving(folders[0]) as small, ours.serving(folders[1]) as large:
        return _compared(run, small, large, words, sizes, users, expired)


def _compared(
    run: Run,
    small: Site,
    large: Site,
    words: Sequence[Sequence[str]],
    sizes: tuple[int, int],
    users: tuple[int, int],
    expired: tuple[int, int],
) -> list[Line]:
    grown = f"{sizes[0]:,} to {sizes[1]:,} objects"
    peopled = f"{users[0]:,} to {users[1]:,} users, {expired[1]:,} expired tokens"
    questions = (
        ("search p50, 1 client", 3.0, grown, [_searches(site, words) for site in (small, large)], "<summary"),
        ("tokeninfo p50", 1.2, peopled, [_tokeninfo(site) for site in (small, large)], "token_id"),
        ("sign-in p50", 1.2, peopled, [[site.sign_in()] for site in (small, large)], "access_token"),
        (
            "first page of the folder of all, p50",
            1.2,
            grown,
            [_list(site) for site in (small, large)],
            "entry",
        ),
        ("console overview p50", 1.2, peopled, [_console(site) for site in (small, large)], "<html"),
    )
    lines = []
    for work, must, what, (before, after), wanted in questions:

        def ask(side: tuple[Site, list[Request]], text: str = wanted) -> Figures:
            site, requests = side
            return load.run(requests, [text], [site.program], seconds=run.seconds, connections=1)

        after_times, before_times = run.measure_in_turn(ask, (large, after), (small, before))
        lines.append(
            page.compared(
                "growth",
                work,
                f"itself, {what}",
                [one.p50 for one in after_times],
                [one.p50 for one in before_times],
                unit=" ms",
                target=at_most(must),
                our_cpu=page.cpu(one.cpu for one in after_times),
                their_cpu=page.cpu(one.cpu for one in before_times),
            )
        )
    return lines


def _searches(site: Site, words: Sequence[Sequence[str]]) -> list[Request]:
    token = site.signed_in()["access_token"]
    return [site.search(token, one) for one in words]


def _tokeninfo(site: Site) -> list[Request]:
    return [site.tokeninfo(site.signed_in()["access_token"])]


def _list(site: Site) -> list[Request]:
    """The first page of the cabinet that holds all the documents."""
    token = site.signed_in()["access_token"]
    headers = (bearer(token), ("Accept", "application/xml"))
    with site.data.opened().database("repository") as database, database.read() as cx:
        found = sa.select(table.objects.c.id).where(table.objects.c.name == ours.CABINET)
        cabinet = cx.execute(found).scalar_one()
    return [Request("GET", f"{site.repository}/folders/{cabinet}/objects?items-per-page=20", "", headers)]


def _console(site: Site) -> list[Request]:
    """The console's overview, for an administrator who has signed in with a browser."""
    address = site.login
    with httpx.Client(verify=site.ca_file, follow_redirects=True) as http:
        shown = http.get(address).raise_for_status().text
        csrf = shown.partition('name="csrf" value="')[2].partition('"')[0]
        form = {"username": "admin@directory.admin", "password": site.data.secret, "csrf": csrf}
        http.post(address, data=form).raise_for_status()
        cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in http.cookies.jar)
    return [Request("GET", f"{site.base}/dirws/console", "", (("Cookie", cookies),))]


def _add_users(data: Data, count: int) -> None:
    """Add users by copying one that was made as anybody makes one."""
    opened = data.opened()
    table = connections.directory_tables.tables["entries"]
    with opened.database("directory") as database:
        with database.begin() as cx:
            partition = entries.find_partition(cx, opened.settings.directory.names, ours.PARTITION)
            made = editing.add_user(cx, partition, "pattern", opened.now)
            pattern = dict(cx.execute(sa.select(table).where(table.c.id == made.id)).mappings().one())
        _copies(
            database,
            table,
            count,
            lambda n: {
                **pattern,
                "id": made.id + 1 + n,
                "uuid": str(uuid.uuid4()),
                "name": f"user-{n:07}",
                "name_key": f"user-{n:07}",
            },
        )


def _add_expired(data: Data, count: int) -> None:
    """Add grants whose tokens have expired a day ago, one token each, and not been forgotten yet."""
    if not count:
        return
    opened = data.opened()
    held, issued = (connections.directory_tables.tables[name] for name in ("grants", "access_tokens"))
    with opened.database("directory") as database:
        with database.begin() as cx:
            names = opened.settings.directory.names
            person = entries.find_user(cx, names, f"{ours.PERSON}@{ours.PARTITION}")
            client = entries.find_client(cx, ours.CLIENT)
            guard = resources.find(cx, names, initialise.resource_name(initialise.REPOSITORY))
            now = opened.now
            # The access token is long dead, its grant is not: that is what the directory keeps longest.
            grant, _ = tokens.open_grant(cx, person.id, client.id, guard.id, now, now + 12 * 3600 * clock.SECOND)
            tokens.add_access_tokens(cx, [(grant, now - 24 * 3600 * clock.SECOND)], now)
            grant_row = dict(cx.execute(sa.select(held).where(held.c.id == grant.id)).mappings().one())
            token_row = dict(cx.execute(sa.select(issued).where(issued.c.grant_id == grant.id)).mappings().one())
        _copies(
            database,
            held,
            count,
            lambda n: {**grant_row, "id": grant.id + 1 + n, "refresh_digest": secrets.token_bytes(32)},
        )
        _copies(
            database,
            issued,
            count,
            lambda n: {
                **token_row,
                "id": str(uuid.uuid4()),
                "digest": secrets.token_bytes(32),
                "grant_id": grant.id + 1 + n,
            },
        )


def _copies(database: connections.Database, table: sa.Table, count: int, row: Callable[[int], dict[str, Any]]) -> None:
    for start in range(0, count, _MANY):
        with database.begin() as cx:
            cx.execute(table.insert(), [row(number) for number in range(start, min(start + _MANY, count))])

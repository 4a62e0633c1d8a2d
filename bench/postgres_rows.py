"""The same server on PostgreSQL: tokeninfo beside a bare endpoint there, refreshes and searches beside SQLite."""

from collections.abc import Iterator, Sequence
from functools import partial

import psycopg

from bench import load, ours, page
from bench.load import Figures, Request
from bench.ours import FORM, Data, Site
from bench.page import Line, at_least
from bench.passages import passages, queries
from bench.peers import postgres
from bench.processes import Program
from bench.run import Run
from bench.search_kinds import CLIENTS
from bench.search_rows import checked
from bench.token_rows import CONNECTIONS, bare_endpoint, verified

TOKENINFO, REFRESH, SEARCH = ROWS = ("tokeninfo-postgresql", "refresh-postgresql", "search-postgresql")

TOKENINFO_TARGET = at_least(0.55, 0.7)

_Side = tuple[Site, list[Program]]
"""A served data folder, and its processes with those of its database."""


def on_postgresql(run: Run) -> Iterator[Line]:
    """The wanted rows, on one PostgreSQL with ``fsync``. Raises Missing."""
    texts = passages(run.size(10_000, 2_000)) if SEARCH in run.rows else []
    with postgres.running() as running:
        places = [running.database(f"muniment_{half}") for half in ("directory", "repository")]
        directory, repository = (f"postgresql://postgres@{host}:{port}/{name}" for host, port, name in places)
        overrides = (f"directory_database={directory}", f"repository_database={repository}")
        data = run.prepare(run.folder("postgresql") / "data", *overrides)
        if TOKENINFO in run.rows:
            yield _tokeninfo(run, data, directory, running.program)
        if not {REFRESH, SEARCH} & run.rows:
            return
        other = run.prepare(run.folder("sqlite") / "data")
        if texts:
            for one in (data, other):
                ours.fill(one, texts)
        with ours.serving(data, "web.workers=2") as here, ours.serving(other, "web.workers=2") as there:
            sides = ((here, [here.program, running.program]), (there, [there.program]))
            if REFRESH in run.rows:
                yield _refresh(run, sides)
            if SEARCH in run.rows:
                yield from _search(run, sides, texts)


def _tokeninfo(run: Run, data: Data, database: str, program: Program) -> Line:
    with ours.serving(data, core=0) as site:
        token = site.signed_in()["access_token"]
        asked = site.tokeninfo(token)
        reply = site.ask(asked).text
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("CREATE TABLE bench_tokens (token text PRIMARY KEY, expires bigint NOT NULL)")
            connection.execute("INSERT INTO bench_tokens VALUES (%s, 0)", (token,))
        environment = {"BENCH_REPLY": reply, "BENCH_DATABASE": database}
        log = run.folder("postgresql-bare") / "log"
        with bare_endpoint(run, site, log, "stored", environment) as (address, bare):
            there = Request(asked.method, address, asked.body, asked.headers)
            mine, theirs = verified(run, reply, (asked, [site.program, program]), (there, [bare, program]))
    return page.compared(
        TOKENINFO,
        "tokeninfo on PostgreSQL, one worker on one core",
        "bare ASGI endpoint on uvicorn, one prepared statement there, same bytes written, TLS",
        [one.rate for one in mine],
        [one.rate for one in theirs],
        target=TOKENINFO_TARGET,
        our_cpu=page.cpu(one.cpu for one in mine),
        their_cpu=page.cpu(one.cpu for one in theirs),
        remark=(
            "8 connections; the statement finds the token by primary key, on 4 connections to the database; "
            "PostgreSQL runs on either core, and its CPU counts for both sides; "
            f"{load.percentiles(mine, theirs)}."
        ),
    )


def _refresh(run: Run, sides: tuple[_Side, _Side]) -> Line:
    found: tuple[list[Figures], list[Figures]] = ([], [])

    def ask(side: _Side, chains: Sequence[str], into: list[Figures]) -> None:
        site, programs = side
        body = f"grant_type=refresh_token&client_id={ours.CLIENT}&refresh_token=%s"
        request = Request("POST", site.login, body, (FORM,))
        into.append(
            load.run([request], ["access_token"], programs, seconds=run.seconds, connections=CONNECTIONS, chains=chains)
        )

    chains = [[site.signed_in()["refresh_token"] for _ in range(CONNECTIONS)] for site, _ in sides]
    for side, tokens in zip(sides, chains, strict=True):
        ask(side, tokens, [])
    run.interleaved(*(partial(ask, *one) for one in zip(sides, chains, found, strict=True)))
    return _beside_sqlite(REFRESH, "refresh on PostgreSQL, durable", *found, of_rates=True)


def _search(run: Run, sides: tuple[_Side, _Side], texts: Sequence[str]) -> Iterator[Line]:
    asked = queries(texts)
    searches = []
    for site, _ in sides:
        token = site.signed_in()["access_token"]
        searches.append([site.search(token, words) for words in asked])
        for request in searches[-1]:
            checked(site, request)
    for clients in CLIENTS:
        found: tuple[list[Figures], list[Figures]] = ([], [])

        def ask(side: _Side, requests: Sequence[Request], into: list[Figures], many: int = clients) -> None:
            into.append(load.run(requests, ["<summary"], side[1], seconds=run.seconds, connections=many))

        for side, requests in zip(sides, searches, strict=True):
            ask(side, requests, [])
        run.interleaved(*(partial(ask, *one) for one in zip(sides, searches, found, strict=True)))
        work = f"AQL search on PostgreSQL, {len(texts):,} real documents, {clients} client{'s' if clients > 1 else ''}"
        yield _beside_sqlite(SEARCH, f"{work}, p50", *found, of_rates=False)


def _beside_sqlite(row: str, work: str, mine: Sequence[Figures], theirs: Sequence[Figures], *, of_rates: bool) -> Line:
    return page.compared(
        row,
        work,
        "itself on SQLite",
        [one.rate if of_rates else one.p50 for one in mine],
        [one.rate if of_rates else one.p50 for one in theirs],
        unit="/s" if of_rates else " ms",
        our_cpu=page.cpu(one.cpu for one in mine),
        their_cpu=page.cpu(one.cpu for one in theirs),
        remark=f"Two workers; CPU with that of PostgreSQL; {load.percentiles(mine, theirs)}.",
    )

"""Measure how one object is created and read beside a bare endpoint, and how it is read by name and password."""

import base64
import json
import os
from collections.abc import Iterator
from dataclasses import replace

from bench import load, ours, page, recordings, statements
from bench.load import Figures, Request, bearer
from bench.ours import PARTITION, PERSON, Data, Site
from bench.page import Line, at_least, at_most
from bench.processes import Program
from bench.run import Run
from bench.token_rows import bare_endpoint

METADATA, BASIC = "metadata", "basic"

CREATE, READ = at_least(0.3), at_least(0.4)
BASIC_TARGET = at_most(1.3)

_CONNECTIONS = 8
_WANTED = ['"r_object_id"']
_JSON = ("Accept", "application/json")
_QUIET_SECONDS = 60.0
_WORK = tuple(f"metadata of one object {done}, {_CONNECTIONS} callers" for done in ("created, durable", "read"))
_LETTER = {
    "object_name": "letter-to-the-registry.txt",
    "title": "A letter to the registry",
    "subject": "Arrears of the year before last",
    "keywords": ["letter", "registry", "arrears"],
}


def metadata(run: Run) -> Iterator[Line]:
    """Create and read one object's metadata, in JSON, with one worker, beside the bare statements.

    The bare endpoint runs the same statements as our endpoint, with the same TLS, in a copy of the same databases, and
    writes the same bytes. It decides nothing, and no index follows it.
    """
    folder = run.folder("metadata")
    data = run.prepare(folder / "data")
    if run.alone:
        yield from _metadata_alone(run, data)
        return
    file, copies = folder / "statements.json", folder / "copies"
    in_process = Site(data, Program(os.getpid()), "https://127.0.0.1", "")
    asked = {one.method: one for one in _requests(in_process)}
    recorded = statements.record(data, in_process.sign_in(), asked)
    recordings.write(file, recorded)
    statements.copy_databases(data, copies)
    environment = {"BENCH_STATEMENTS": str(file), "BENCH_DATABASE": str(copies)}
    with (
        ours.serving(data) as site,
        bare_endpoint(run, site, folder / "bare.log", "replayed", environment) as (address, program),
    ):
        token = site.signed_in()["access_token"]
        made = recorded["POST"].new_id
        for target, work, mine, theirs in zip(
            (CREATE, READ),
            _WORK,
            _requests(site, token, made),
            _requests(replace(site, base=address.rstrip("/")), token, made),
            strict=True,
        ):
            figures = _beside(run, (mine, site.program), (theirs, program))
            count = len(recorded[mine.method].statements)
            yield page.compared(
                METADATA,
                work,
                f"bare ASGI endpoint on uvicorn, the same {count} statements in a copy, same bytes written, TLS",
                [one.rate for one in figures[0]],
                [one.rate for one in figures[1]],
                target=target,
                our_cpu=page.cpu(one.cpu for one in figures[0]),
                their_cpu=page.cpu(one.cpu for one in figures[1]),
                remark=(
                    f"{len(recorded[mine.method].reply)} bytes of reply; {load.percentiles(*figures)}. Default "
                    "settings; our CPU is that of all processes: those that index what was created work meanwhile, and "
                    "each side comes to rest before the other begins."
                ),
            )


def _metadata_alone(run: Run, data: Data) -> Iterator[Line]:
    with ours.serving(data) as site:
        token = site.signed_in()["access_token"]
        create, _ = _requests(site, token)
        made = site.ask(create).json()["properties"]["r_object_id"]
        for work, request in zip(_WORK, _requests(site, token, made), strict=True):
            side = (request, site.program)
            yield page.compared(METADATA, work, "", [one.rate for one in _beside(run, side, side)[0]], [])


def basic(run: Run) -> list[Line]:
    """Read the same object with a name and a password in each request, beside a token in each request."""
    data = run.prepare(run.folder("basic") / "data")
    with ours.serving(data, f"repository.basic_client={ours.CLIENT}") as site:
        token = site.signed_in()["access_token"]
        create, _ = _requests(site, token)
        made = site.ask(create).json()["properties"]["r_object_id"]
        _, by_token = _requests(site, token, made)
        pair = base64.b64encode(f"{PERSON}@{PARTITION}:{data.secret}".encode()).decode()
        by_pair = Request("GET", by_token.address, "", (_JSON, ("Authorization", f"Basic {pair}")))

        def ask(request: Request) -> Figures:
            return load.run([request], _WANTED, [site.program], seconds=run.seconds, connections=1, core=1)

        figures = run.measure_in_turn(ask, by_pair, by_token)
    return [
        page.compared(
            BASIC,
            "metadata of one object read by name and password (HTTP Basic), 1 client, p50",
            "the same request with a token (Bearer)",
            [one.p50 for one in figures[0]],
            [one.p50 for one in figures[1]],
            unit=" ms",
            target=BASIC_TARGET,
            our_cpu=page.cpu(one.cpu for one in figures[0]),
            their_cpu=page.cpu(one.cpu for one in figures[1]),
            remark="The password was checked once, at the first request; the directory is asked at each.",
        )
    ]


def _beside(
    run: Run, mine: tuple[Request, Program], theirs: tuple[Request, Program]
) -> tuple[list[Figures], list[Figures]]:
    """Send each side its request in turn, with the load on the second core."""

    def ask(side: tuple[Request, Program]) -> Figures:
        request, program = side
        figures = load.run([request], _WANTED, [program], seconds=run.seconds, connections=_CONNECTIONS, core=1)
        program.quiet(_QUIET_SECONDS)
        return figures

    return run.measure_in_turn(ask, mine, theirs)


def _requests(site: Site, token: str = "", made: str = statements.MADE) -> tuple[Request, Request]:
    """Prepare to create an object, and to read the one that was made."""
    here = site.repository
    headers = (_JSON, bearer(token)) if token else (_JSON,)
    body = json.dumps({"properties": _LETTER})
    return (
        Request("POST", f"{here}/objects", body, (("Content-Type", "application/json"), *headers)),
        Request("GET", f"{here}/objects/{made}", "", headers),
    )

"""The directory's rows: tokeninfo, refresh and the password grant, beside bare endpoints and three other servers."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path

from bench import load, ours, page
from bench.load import Figures, Request
from bench.ours import FORM, Site
from bench.page import ROOT, Line, Target, at_least, at_most
from bench.peers import Missing, django_oauth_toolkit, keycloak, oidc_provider, postgres
from bench.peers.tokens import TokenServer
from bench.processes import Program, free_port, started
from bench.run import Run

CONNECTIONS = 16
WARM_UP = 30

BARE = "tokeninfo, whole user object, one worker on one core"
VERIFY = "tokeninfo, two cores"
REFRESH = "refresh, durable"
BESIDE_BARE = at_least(0.55, 0.7)
TARGETS = {
    "tokeninfo": {
        "node-oidc-provider": at_least(2, 3),
        "Keycloak": at_least(4, 6),
        "django-oauth-toolkit": at_least(16, 24),
    },
    "refresh": {
        "node-oidc-provider": at_least(1.5, 2),
        "Keycloak": at_least(4, 5.5),
        "django-oauth-toolkit": at_least(25, 30),
    },
}


def bare(run: Run) -> list[Line]:
    """One worker bound to one core, the load on the other, beside a bare endpoint that writes the same bytes."""
    data = run.prepare(run.folder("bare") / "data")
    with ours.serving(data, core=0) as site:
        asked = site.tokeninfo(site.signed_in()["access_token"])
        reply = site.ask(asked).text
        log = run.folder("bare-endpoint") / "log"
        with bare_endpoint(run, site, log, "application", {"BENCH_REPLY": reply}) as (address, program):
            there = Request(asked.method, address, asked.body, asked.headers)
            mine, theirs = verified(run, reply, (asked, [site.program]), (there, [program]))
    return [
        page.compared(
            "tokeninfo-bare",
            BARE,
            "bare ASGI endpoint on uvicorn, same JSON read, same bytes written, TLS",
            [one.rate for one in mine],
            [one.rate for one in theirs],
            target=BESIDE_BARE,
            our_cpu=page.cpu(one.cpu for one in mine),
            their_cpu=page.cpu(one.cpu for one in theirs),
            remark=f"8 connections, {len(reply)} bytes of reply; {load.percentiles(mine, theirs)}.",
        )
    ]


Side = tuple[Request, list[Program]]


def verified(run: Run, reply: str, mine: Side, theirs: Side) -> tuple[list[Figures], list[Figures]]:
    """Verify one token at both sides in turn, over eight connections, with the load on the second core."""
    wanted = [json.loads(reply)["token_id"]]

    def ask(side: Side) -> Figures:
        request, programs = side
        return load.run([request], wanted, programs, seconds=run.seconds, connections=8, core=1)

    return run.measure_in_turn(ask, mine, theirs)


def peers(run: Run) -> Iterator[Line]:
    """tokeninfo and refresh beside the three servers, all running at one time and loaded in turn."""
    data = run.prepare(run.folder("tokens") / "data")
    with ExitStack() as stack:
        site = stack.enter_context(ours.serving(data, "web.workers=2"))
        servers, missing = ([], []) if run.alone else token_servers(run.folder("peers"), stack)
        for row, work, its, measure in (
            ("tokeninfo", VERIFY, "introspection", _verifying),
            ("refresh", REFRESH, "refresh", _refreshing),
        ):
            if row in run.rows:
                mine, theirs = measure(run, site, servers)
                yield from (_beside(server, row, work, its, mine, theirs[server.name]) for server in servers)
                yield from (page.skipped(row, work, name, why, _target(row, name)) for name, why in missing)
                if run.alone:
                    yield page.compared(row, work, "", [one.rate for one in mine], [])


def _target(row: str, server: str) -> Target:
    (target,) = [target for name, target in TARGETS[row].items() if server.startswith(name)]
    return target


def password(run: Run) -> list[Line]:
    """The password grant beside bare threads of the same hash, and the slowest answers of tokeninfo meanwhile."""
    data = run.prepare(run.folder("password") / "data")
    options = data.opened().settings.directory
    threads = options.hash_slots or max(1, (os.cpu_count() or 2) - 1)
    seconds = max(4.0, run.seconds)
    mine: list[Figures] = []
    theirs: list[tuple[float, float]] = []
    idle: list[float] = []
    busy: list[float] = []
    with ours.serving(data) as site:
        verify = site.tokeninfo(site.signed_in()["access_token"])

        def grants() -> None:
            mine.append(load.run([site.sign_in()], ["access_token"], [site.program], seconds=seconds, connections=4))

        def hashes() -> None:
            theirs.append(_hashes(threads, options.hash_memory_kib, options.hash_passes, seconds))

        def quiet() -> None:
            idle.append(load.run([verify], ["token_id"], [site.program], seconds=seconds, connections=2).p99)

        def flooded() -> None:
            with _flood(site, seconds + 2):
                busy.append(load.run([verify], ["token_id"], [site.program], seconds=seconds, connections=2).p99)

        run.interleaved(grants, hashes)
        run.interleaved(flooded, quiet)
    return [
        page.compared(
            "password",
            "password grant",
            f"the same argon2id in a loop, {threads} thread(s) as the gate allows",
            [one.rate for one in mine],
            [rate for rate, _ in theirs],
            target=at_least(0.9),
            our_cpu=page.cpu(one.cpu for one in mine),
            their_cpu=page.cpu(used for _, used in theirs),
            remark=f"argon2id, {options.hash_memory_kib} KiB, {options.hash_passes} passes; 4 clients.",
        ),
        page.compared(
            "password",
            "tokeninfo p99 while 16 clients sign in without pause",
            "its p99 on the idle server",
            busy,
            idle,
            unit=" ms",
            target=at_most(5),
            remark="2 connections verify as fast as they can, default gate, generators on the same two cores.",
        ),
    ]


def _verifying(run: Run, site: Site, servers: list[TokenServer]) -> tuple[list[Figures], dict[str, list[Figures]]]:
    asked = site.tokeninfo(site.signed_in()["access_token"])
    mine: list[Figures] = []
    theirs: dict[str, list[Figures]] = {server.name: [] for server in servers}

    def ourselves(seconds: float = run.seconds) -> Figures:
        return load.run([asked], ["token_id"], [site.program], seconds=seconds, connections=CONNECTIONS)

    def other(server: TokenServer, request: Request, seconds: float = run.seconds) -> Figures:
        return load.run([request], server.ACTIVE, server.programs, seconds=seconds, connections=CONNECTIONS)

    requests = {server.name: server.introspection() for server in servers}
    for server in servers:
        other(server, requests[server.name], warm_up(run, server))
    ourselves(2)
    run.interleaved(
        lambda: mine.append(ourselves()),
        *(partial(lambda one: theirs[one.name].append(other(one, requests[one.name])), server) for server in servers),
    )
    return mine, theirs


def _refreshing(run: Run, site: Site, servers: list[TokenServer]) -> tuple[list[Figures], dict[str, list[Figures]]]:
    body = f"grant_type=refresh_token&client_id={ours.CLIENT}&refresh_token=%s"
    asked = Request("POST", site.login, body, (FORM,))
    chains = [site.signed_in()["refresh_token"] for _ in range(CONNECTIONS)]
    mine: list[Figures] = []
    theirs: dict[str, list[Figures]] = {server.name: [] for server in servers}

    def ourselves(seconds: float = run.seconds) -> Figures:
        # Each answer is a new access token, committed; the refresh token stays the same (given 2.4).
        return load.run(
            [asked], ["access_token"], [site.program], seconds=seconds, connections=CONNECTIONS, chains=chains
        )

    def other(server: TokenServer, seconds: float = run.seconds) -> Figures:
        body = "grant_type=refresh_token&refresh_token=%s"
        request = Request("POST", server.token_url, body, (FORM, ("Authorization", server.authorization)))
        return load.run(
            [request],
            ["access_token"],
            server.programs,
            seconds=seconds,
            connections=CONNECTIONS,
            # Fresh ones each round: a token that was used is gone, and the last answer of a round is lost.
            chains=server.refresh_tokens(CONNECTIONS),
            # At the end of a round a connection is closed with its answer on the way.
            tolerated=0.001,
        )

    for server in servers:
        other(server, warm_up(run, server))
    ourselves(2)
    run.interleaved(
        lambda: mine.append(ourselves()),
        *(partial(lambda one: theirs[one.name].append(other(one)), server) for server in servers),
    )
    return mine, theirs


def _beside(server: TokenServer, row: str, work: str, its: str, mine: list[Figures], theirs: list[Figures]) -> Line:
    return page.compared(
        row,
        work,
        f"{server.name}: {its}",
        [one.rate for one in mine],
        [one.rate for one in theirs],
        target=_target(row, server.name),
        our_cpu=page.cpu(one.cpu for one in mine),
        their_cpu=page.cpu(one.cpu for one in theirs),
        versions=f"{server.name}: {server.about}",
        remark=(f"{CONNECTIONS} connections; {load.percentiles(mine, theirs)}; ours over TLS, theirs plain."),
    )


def warm_up(run: Run, server: TokenServer) -> float:
    """So many seconds a server works before it is measured."""
    if run.quick:
        return 4
    return WARM_UP if server.name.startswith("Keycloak") else 4


def token_servers(
    scratch: Path, stack: ExitStack, *, django: bool = True
) -> tuple[list[TokenServer], list[tuple[str, str]]]:
    """Start the servers beside which we are measured, with their data in ``scratch``, until the stack is closed; name
    as well those that cannot be had, and why.
    """
    servers: list[TokenServer] = []
    missing: list[tuple[str, str]] = []

    def attempt(name: str, begin: Callable[[], AbstractContextManager[TokenServer]]) -> None:
        print(f"    starting {name}", flush=True)
        try:
            servers.append(stack.enter_context(begin()))
        except (Missing, RuntimeError, OSError) as why:
            print(f"    {name} is left out: {why}", flush=True)
            missing.append((name, str(why)))

    attempt("node-oidc-provider", lambda: oidc_provider.serving(scratch))
    try:
        database = stack.enter_context(postgres.running())
    except Missing as why:
        return servers, [*missing, ("Keycloak", str(why)), ("django-oauth-toolkit", str(why))]

    attempt("Keycloak", lambda: keycloak.serving(scratch, database.database("keycloak"), database.program))
    if django:
        attempt(
            "django-oauth-toolkit",
            lambda: django_oauth_toolkit.serving(scratch, database.database("dot"), database.program),
        )
    return servers, missing


@contextmanager
def bare_endpoint(
    run: Run, site: Site, log: Path, name: str, environment: dict[str, str], *, core: int | None = 0
) -> Iterator[tuple[str, Program]]:
    """Serve an endpoint of ``bench.bare`` with our certificate, bound to the first core.

    A run of our server alone measures no other: it gets the address of our server in its place.
    """
    if run.alone:
        yield f"{site.base}/", site.program
        return
    port = free_port()
    tls = Path(site.ca_file).parent
    command = [sys.executable, "-m", "uvicorn", f"bench.bare:{name}", "--port", str(port), "--no-access-log"]
    command += ["--ssl-keyfile", str(tls / "server-key.pem"), "--ssl-certfile", str(tls / "server.pem")]
    address = f"https://127.0.0.1:{port}/"
    with started(command, log, ready=address, core=core, environment=environment, cwd=ROOT) as program:
        yield address, program


@contextmanager
def _flood(site: Site, seconds: float) -> Iterator[None]:
    """Sixteen clients sign in without pause, in a process of their own."""
    code = (
        "import sys, json; from bench import load; r = json.loads(sys.argv[1]);"
        "load.run([load.Request(r[0], r[1], r[2], (('Content-Type', 'application/x-www-form-urlencoded'),))],"
        "['access_token'], [], seconds=float(sys.argv[2]), connections=16)"
    )
    asked = site.sign_in()
    said = json.dumps([asked.method, asked.address, asked.body])
    flood = subprocess.Popen([sys.executable, "-c", code, said, str(seconds)], cwd=ROOT)
    try:
        yield
        if flood.wait(60):
            raise RuntimeError("the flood of sign-ins did not go as it should")
    finally:
        flood.kill()
        flood.wait()


def _hashes(threads: int, memory_kib: int, passes: int, seconds: float) -> tuple[float, float]:
    """Hash in a loop on so many threads of a fresh process: hashes a second, CPU ms a hash."""
    code = (
        "import sys, time, threading, resource; from argon2.low_level import hash_secret_raw, Type\n"
        "memory, passes, seconds, threads = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])\n"
        "done = []; end = time.perf_counter() + seconds; before = time.process_time(); began = time.perf_counter()\n"
        "def loop():\n"
        "    while time.perf_counter() < end:\n"
        "        hash_secret_raw(b'password', b'salt' * 4, passes, memory, 1, 32, Type.ID); done.append(1)\n"
        "workers = [threading.Thread(target=loop) for _ in range(threads)]\n"
        "[one.start() for one in workers]; [one.join() for one in workers]\n"
        "took = time.perf_counter() - began\n"
        "print(len(done) / took, 1000 * (time.process_time() - before) / len(done))\n"
    )
    command = [sys.executable, "-c", code, str(memory_kib), str(passes), str(seconds), str(threads)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return float(said[0]), float(said[1])

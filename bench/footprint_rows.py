"""Memory, start and streams: what the processes hold, how soon they answer, and how fast large bytes pass through."""

import os
import shutil
import statistics
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from bench import load, memories, ours, page
from bench.load import Request, bearer
from bench.ours import FORM, Site
from bench.page import Line, at_least, at_most
from bench.passages import passages
from bench.peers import Missing, keycloak, opensearch, opensearch_index, postgres
from bench.processes import Held, Program
from bench.run import Run
from bench.search_kinds import WORDS
from bench.token_rows import bare_endpoint

_MB = 1_000_000
_MIB = 2**20
_WORDS = ("database", "index", "function", "table", "server", "value", "document", "option")
_IDLE_MB = 220

GROWTH = at_most(1.03, 1.01)
STREAMS, STREAMS_BARE = at_least(0.5), at_least(0.8)


def memory(run: Run) -> list[Line]:
    """The memory of all processes, idle and after 10,000 and 20,000 mixed requests, and the time to get ready."""
    count = run.size(10_000, 600)
    texts = passages(run.size(2_000, 500))
    data = run.prepare(run.folder("memory") / "data")
    ours.fill(data, texts)
    starts = []
    for _ in range(run.rounds):
        run.take_turn()
        began = time.perf_counter()
        with ours.serving(data) as site:
            starts.append(time.perf_counter() - began)
    ready = statistics.median(starts)
    with ours.serving(data) as site:
        held = [_rested(run, site.program, data.folder)]
        for _ in range(2):
            _mixed(site, count)
            held.append(_rested(run, site.program, data.folder))
        processes = len(site.program.pids())
    listed = [] if run.alone else memories.caps(data)
    print(f"    ours: {_spelled(held)}, ready in {ready:.2f} s", flush=True)
    for cap in listed:
        print(f"    cap of a process: {cap.memory}: {cap.most}", flush=True)
    lines = [
        page.compared(
            "memory",
            f"private memory of all processes, default settings, after {2 * count:,} mixed requests",
            f"itself after {count:,}",
            [held[2].private / _MB],
            [held[1].private / _MB],
            unit=" MB",
            target=GROWTH,
            remark=(
                f"{_spelled(held)}. {processes} processes, {len(texts):,} documents; the requests are tokeninfo, "
                "refresh, AQL and keyword searches, lists, reads and writes of objects in turn over 16 connections. "
                f"Caps of a process: {'; '.join(f'{cap.memory} {cap.most}' for cap in listed)}."
            ),
        ),
        Line(
            row="memory",
            work="private memory, idle, then after the requests",
            beside="itself",
            must=f"idle < {_IDLE_MB} MB with its share of shared pages",
            ratio=held[1].private / held[0].private,
            figure=held[1].private / _MB,
            met=held[0].pss < _IDLE_MB * _MB,
            ours=_short(held, "private"),
        ),
        Line(
            row="memory",
            work="start until ready, an existing data folder",
            beside="itself",
            must="< 3 s",
            met=ready < 3,
            figure=ready,
            ours=f"{ready:.2f} s",
        ),
    ]
    for name, measure in (("Keycloak", _keycloak), ("OpenSearch", _opensearch)):
        try:
            run.need_peers()
            started_in, theirs, about = measure(run, count, texts)
        except (Missing, RuntimeError) as why:
            lines += [page.skipped("memory", one.work, name, str(why)) for one in lines[1:3]]
            continue
        print(f"    {name}: {_spelled(theirs)}, ready in {started_in:.1f} s", flush=True)
        lines.append(
            Line(
                row="memory",
                work="memory by share (PSS), idle, then after the requests",
                beside=name,
                ratio=held[0].pss / theirs[0].pss,
                ours=_short(held, "pss"),
                theirs=_short(theirs, "pss"),
                versions=about,
                remark=f"By share, because our processes share pages. Theirs: {_spelled(theirs)}.",
            )
        )
        lines.append(
            Line(
                row="memory",
                work="start until ready",
                beside=name,
                ratio=ready / started_in,
                ours=f"{ready:.2f} s",
                theirs=f"{started_in:.1f} s",
                remark="Its second start, when the database or the node's folder exists.",
            )
        )
    return lines


def streams(run: Run) -> list[Line]:
    """2 GiB up and down through TLS, beside ``cp`` and a bare file endpoint on the same server; extra memory."""
    size = run.size(2048, 128) * _MIB
    folder = run.folder("streams")
    if shutil.disk_usage(folder).free < 8 * size:
        why = f"eight times {size // _MIB} MiB are needed on the disk of {folder}"
        return [page.skipped("streams", "2 GiB up and down through TLS", "cp and a bare endpoint", why, STREAMS)]
    file = folder / "file"
    with file.open("wb") as out:
        piece = os.urandom(_MIB)
        for number in range(size // _MIB):
            out.write(number.to_bytes(8, "big") + piece[8:])
    data = run.prepare(folder / "data")
    with ExitStack() as stack:
        site = stack.enter_context(ours.serving(data))
        environment = {"BENCH_FILE": str(file)}
        bare, program = stack.enter_context(
            bare_endpoint(run, site, folder / "bare.log", "files", environment, core=None)
        )
        made = _object(site)
        return _passed(run, Transfers(folder, file, size, bare, program, made, site))


class Transfers:
    """The transfers of one file: up, down, and by ``cp``; each says MiB a second, the extra memory, the CPU."""

    def __init__(self, folder: Path, file: Path, size: int, bare: str, program: Program, made: str, site: Site) -> None:
        self._folder, self._file, self._size = folder, file, size
        self._bare, self._program, self._made, self._site = bare, program, made, site
        self._bearer = "Authorization: Bearer " + site.signed_in()["access_token"]

    def ours_up(self) -> tuple[float, int, float]:
        """Replace an object's content."""
        return self._up(f"{self._made}/contents", self._site.program, "201")

    def bare_up(self) -> tuple[float, int, float]:
        """Give the bytes to the bare endpoint."""
        return self._up(self._bare, self._program, "200")

    def ours_down(self) -> tuple[float, int, float]:
        """Read the content back, and compare it."""
        return self._down(f"{self._made}/content-media", self._site.program)

    def bare_down(self) -> tuple[float, int, float]:
        """Read the bytes from the bare endpoint, and compare them."""
        return self._down(f"{self._bare}file", self._program)

    def copied(self) -> tuple[float, int, float]:
        """Copy the file, and bring it to the disk as our content store does."""
        target = self._folder / "copy"
        began = time.perf_counter()
        subprocess.run(["cp", self._file, target], check=True)
        with target.open("rb") as copy:
            os.fsync(copy.fileno())
        took = time.perf_counter() - began
        target.unlink()
        return self._size / _MIB / took, 0, 0.0

    def _up(self, address: str, program: Program, expected: str) -> tuple[float, int, float]:
        headers = ["-H", self._bearer, "-H", "Content-Type: application/octet-stream", "-H", "Expect:"]
        command = ["curl", "-sS", "-k", "-X", "POST", "-T", str(self._file), *headers, "-o", "/dev/null"]
        return self._timed([*command, "-w", "%{http_code}", address], program, expected)

    def _down(self, address: str, program: Program) -> tuple[float, int, float]:
        target = self._folder / "down"
        command = ["curl", "-sS", "-k", "-H", self._bearer, "-o", str(target), "-w", "%{http_code}", address]
        found = self._timed(command, program, "200")
        subprocess.run(["cmp", self._file, target], check=True)
        target.unlink()
        return found

    def _timed(self, command: Sequence[str], program: Program, expected: str) -> tuple[float, int, float]:
        highest, before, used = [0], program.memory(), program.cpu_seconds()
        stop = threading.Event()

        def watch() -> None:
            while not stop.wait(0.1):
                highest[0] = max(highest[0], program.memory())

        watching = threading.Thread(target=watch)
        watching.start()
        began = time.perf_counter()
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        finally:
            took = time.perf_counter() - began
            stop.set()
            watching.join()
        if done.returncode or done.stdout != expected:
            raise load.WrongAnswers(f"curl: {done.stdout} {done.stderr}"[:400])
        seconds = program.cpu_seconds() - used
        return self._size / _MIB / took, max(0, highest[0] - before), seconds


def _passed(run: Run, transfers: Transfers) -> list[Line]:
    figures: defaultdict[str, list[tuple[float, int, float]]] = defaultdict(list)

    def note(name: str, measure: Callable[[], tuple[float, int, float]]) -> None:
        figures[name].append(measure())

    def both_ways() -> None:
        note("ours up", transfers.ours_up)
        note("ours down", transfers.ours_down)

    def bare() -> None:
        note("bare up", transfers.bare_up)
        note("bare down", transfers.bare_down)

    run.interleaved(both_ways, bare, lambda: note("cp", transfers.copied))
    lines = []
    for way in ("up", "down"):
        mine = figures[f"ours {way}"]
        extra = max(memory for _, memory, _ in mine)
        for name, beside in ((f"bare {way}", "bare file endpoint on uvicorn, TLS"), ("cp", "cp, then fsync")):
            theirs = figures[name]
            line = page.compared(
                "streams",
                f"2 GiB {way} through TLS",
                beside,
                [rate for rate, _, _ in mine],
                [rate for rate, _, _ in theirs],
                unit=" MiB/s",
                target=STREAMS if name == "cp" else STREAMS_BARE,
                our_cpu=_cpu(mine),
                their_cpu="" if name == "cp" or run.alone else _cpu(theirs),
                remark=f"With curl on the same cores; ours took {extra / _MIB:.0f} MiB of extra memory.",
            )
            line.must += ", < 100 MiB more memory"
            line.met = bool(line.met) and extra < 100 * _MIB
            lines.append(line)
    return lines


def _cpu(transfers: Sequence[tuple[float, int, float]]) -> str:
    return f"{statistics.median(used for _, _, used in transfers):.1f} s in all"


def _mixed(site: Site, count: int) -> None:
    """Send so many requests of every common kind."""
    signed_in = site.signed_in()
    token = signed_in["access_token"]
    accept = ("Accept", "application/xml")
    refresh = f"grant_type=refresh_token&client_id={ours.CLIENT}&refresh_token={signed_in['refresh_token']}"
    requests = [
        *(site.tokeninfo(token) for _ in range(4)),
        Request("POST", site.login, refresh, (FORM,)),
        *(site.search(token, [word]) for word in _WORDS[:3]),
        *(site.keywords(token, word) for word in _WORDS[3:]),
        Request("GET", f"{site.repository}/cabinets", "", (bearer(token), accept)),
        Request("GET", _object(site), "", (bearer(token), accept)),
        Request(
            "POST",
            f"{site.repository}/objects?object-name=note.txt",
            "A note of a few words.",
            (bearer(token), ("Content-Type", "text/plain"), accept),
        ),
    ]
    load.send(requests, [], [site.program], count)


def _object(site: Site) -> str:
    """Make an object, and give its address among all objects."""
    headers = (bearer(site.signed_in()["access_token"]), ("Content-Type", "text/plain"), ("Accept", "application/xml"))
    made = site.ask(Request("POST", f"{site.repository}/objects?object-name=file.bin", "Some words.", headers))
    return f"{site.repository}/objects/{made.headers['location'].rpartition('/')[2]}"


def _keycloak(run: Run, count: int, _texts: Sequence[str]) -> tuple[float, list[Held], str]:
    scratch = run.folder("keycloak-memory")
    with postgres.running() as running:
        database = running.database("keycloak")
        with keycloak.serving(scratch, database, running.program):
            pass
        began = time.perf_counter()
        with keycloak.serving(scratch, database, running.program, new=False) as server:
            took = time.perf_counter() - began
            program = server.programs[0]
            held = [_rested(run, program, scratch)]
            load.send([server.introspection()], server.ACTIVE, [program], count)
            held.append(_rested(run, program, scratch))
            about = f"{server.name}: {server.about}; memory without that of PostgreSQL; the requests are introspections"
            return took, held, about


def _opensearch(run: Run, count: int, texts: Sequence[str]) -> tuple[float, list[Held], str]:
    scratch = run.folder("opensearch-memory")
    began = time.perf_counter()
    with opensearch.serving(scratch) as peer:
        took = time.perf_counter() - began
        opensearch_index.bulk(peer, "bench", texts)
        held = [_rested(run, peer.program, scratch)]
        searches = [opensearch_index.search(peer, WORDS.theirs([word])) for word in _WORDS]
        load.send(searches, ["hits"], [peer.program], count)
        held.append(_rested(run, peer.program, scratch))
        return took, held, f"{peer.about}; the requests are searches"


def _rested(run: Run, program: Program, data: Path) -> Held:
    """Let the processes come to rest, and say what they hold."""
    program.quiet(60)
    time.sleep(run.size(10, 3))
    return program.held(data)


def _short(held: Sequence[Held], part: str) -> str:
    idle, after = getattr(held[0], part), getattr(held[1], part)
    return f"{idle / _MB:.0f} MB, then {after / _MB:.0f} MB ({100 * (after / idle - 1):+.0f} %)"


def _spelled(held: Sequence[Held]) -> str:
    def each(part: str) -> str:
        return ", ".join(f"{getattr(one, part) / _MB:.1f}" for one in held)

    return (
        f"idle, then after {'the' if len(held) == 2 else 'each half of the'} requests: private {each('private')} MB, "
        f"mapped files of data {each('mapped')} MB, proportional set size of all {each('pss')} MB"
    )

"""The repository's writes: an import, single texts, and how soon a write is found."""

import json
import secrets
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import lxml.etree

from bench import engine, load, ours, page
from bench.load import Request, bearer
from bench.ours import Data, Site
from bench.page import Line, at_least
from bench.passages import passages
from bench.peers import Missing, opensearch, opensearch_index
from bench.processes import Program
from bench.run import Run

_VOCABULARY = "{urn:muniment:vocab}"
_IMPORT_SECONDS, _IMPORTS_SECONDS = 300, 200
"""When one import is stopped, and after how much importing no further round is made."""

_FOUND_SECONDS = 20.0
_QUIET_SECONDS = 120.0
_CALLERS = 8

IMPORT, IMPORT_ENGINE = at_least(0.30, 0.40), at_least(0.14, 0.18)
CHECK_IN = 2.0
POSTS = at_least(0.15, 0.5)  # what must be reached is twice the ratio of 2026-11-22


def importing(run: Run) -> list[Line]:
    """``muniment import`` of small plain texts until searchable, beside OpenSearch's bulk and the bare engine."""
    texts = _small_texts(run.size(20_000, 1_000))
    folder = run.folder("import")
    (folder / "texts.json").write_text(json.dumps(texts))
    _write_files(folder / "files", texts)
    work = f"import of {len(texts):,} plain texts of about 1 kB until searchable"
    mine: list[tuple[float, float]] = []
    theirs: list[tuple[float, float]] = []
    bare: list[tuple[float, float]] = []
    missing = ""
    numbers = iter(range(1000))

    def ourselves() -> None:
        if sum(len(texts) / rate for rate, _ in mine) > _IMPORTS_SECONDS:
            return  # slow enough to be sure
        data = run.prepare(run.folder(f"imported-{next(numbers)}") / "data")
        mine.append(_imported(data, folder / "files", len(texts)))

    def alone() -> None:
        took, used = engine.build(folder / "texts.json", folder / f"engine-{next(numbers)}")
        bare.append((len(texts) / took, 1000 * used / len(texts)))

    about = ""
    with ExitStack() as stack:
        sides = [alone]
        try:
            run.need_peers()
            peer = stack.enter_context(opensearch.serving(run.folder("opensearch-import")))
            opensearch_index.bulk(peer, "warm", texts[:5000])
        except (Missing, RuntimeError) as why:
            missing = str(why)
        else:
            about = peer.about

            def other() -> None:
                before, began = peer.program.cpu_seconds(), time.perf_counter()
                opensearch_index.bulk(peer, f"import-{next(numbers)}", texts)
                took = time.perf_counter() - began
                used = peer.program.cpu_seconds() - before
                theirs.append((len(texts) / took, 1000 * used / len(texts)))

            sides.insert(0, other)
        run.interleaved(ourselves, *sides)
    our_cpu = page.cpu(used for _, used in mine)
    remark = "Server with the default settings, files on disk; CPU a text is that of server and command together."
    lines = [
        page.compared(
            "import",
            work,
            "bare tantivy-py, one commit",
            [rate for rate, _ in mine],
            [rate for rate, _ in bare],
            target=IMPORT_ENGINE,
            our_cpu=our_cpu,
            their_cpu=page.cpu(used for _, used in bare),
            remark="The engine keeps no content, no rows and no log.",
        )
    ]
    beside = f"OpenSearch {opensearch.VERSION} _bulk, 1,000 a request, then _refresh"
    if missing:
        return [page.skipped("import", work, beside, missing, IMPORT), *lines]
    first = page.compared(
        "import",
        work,
        beside,
        [rate for rate, _ in mine],
        [rate for rate, _ in theirs],
        target=IMPORT,
        our_cpu=our_cpu,
        their_cpu=page.cpu(used for _, used in theirs),
        versions=about,
        remark=remark + " Their texts are sent from memory over one connection, and their CPU leaves that client out.",
    )
    return [first, *lines]


def posts(run: Run) -> list[Line]:
    """Texts of about 1 kB, one a POST and on the disk before the answer, beside single documents of OpenSearch."""
    texts = _small_texts(2_000)
    work = f"one text of about 1 kB a POST, durable, {_CALLERS} callers"
    beside = f"OpenSearch {opensearch.VERSION} _doc, translog synced before each answer"
    data = run.prepare(run.folder("posts") / "data")
    mine: list[tuple[float, float]] = []
    theirs: list[tuple[float, float]] = []
    about = missing = ""
    with ExitStack() as stack:
        site = stack.enter_context(ours.serving(data))
        token = site.signed_in()["access_token"]
        ours_to_post = [_post(site, token, number, text) for number, text in enumerate(texts)]
        _posted(run.size(5, 1), ours_to_post, "muniment", site.program)
        sides: list[Callable[[], None]] = []
        try:
            run.need_peers()
            peer = stack.enter_context(opensearch.serving(run.folder("opensearch-posts")))
        except (Missing, RuntimeError) as why:
            missing = page.why_skipped(str(why))
        else:
            about = peer.about
            opensearch_index.make(peer, "bench")
            theirs_to_post = [opensearch_index.post(peer, "bench", number, text) for number, text in enumerate(texts)]

            def other() -> None:
                theirs.append(_posted(run.seconds, theirs_to_post, '"result":"created"', peer.program))

            _posted(run.size(30, 2), theirs_to_post, '"result":"created"', peer.program)
            sides.append(other)
        run.interleaved(lambda: mine.append(_posted(run.seconds, ours_to_post, "muniment", site.program)), *sides)
    return [
        page.compared(
            "posts",
            work,
            beside,
            [rate for rate, _ in mine],
            [rate for rate, _ in theirs],
            target=POSTS,
            our_cpu=page.cpu(used for _, used in mine),
            their_cpu=page.cpu(used for _, used in theirs),
            versions=about,
            remark=missing
            or (
                "Default settings; each side comes to rest before the other posts, and CPU a text is that until then, "
                "extraction and index included. Ours over TLS and behind a token, theirs plain."
            ),
        )
    ]


def _posted(seconds: float, requests: Sequence[Request], wanted: str, program: Program) -> tuple[float, float]:
    """Post the texts in turn: texts a second, and CPU ms a text until all that follows them is done."""
    before = program.cpu_seconds()
    found = load.run(requests, [wanted], [program], seconds=seconds, connections=_CALLERS)
    if not program.quiet(_QUIET_SECONDS):
        print(f"    still at work {_QUIET_SECONDS:.0f} s after {found.count:,} texts", flush=True)
    return found.rate, 1000 * (program.cpu_seconds() - before) / found.count


def _post(site: Site, token: str, number: int, text: str) -> Request:
    headers = (bearer(token), ("Content-Type", "text/plain"), ("Accept", "application/xml"))
    return Request("POST", f"{site.repository}/objects?object-name=text-{number}.txt", text, headers)


def lag(run: Run) -> list[Line]:
    """How soon a search finds a document that a caller has sent, on an idle server and while an import runs."""
    data = run.prepare(run.folder("lag") / "data")
    texts = _small_texts(run.size(20_000, 1_000))
    files = run.folder("lag-files") / "files"
    _write_files(files, texts)

    def in_turn() -> bool:
        run.take_turn()
        return True

    with ours.serving(data) as site:
        idle = lags(site, run.size(100, 20), in_turn)
        command = ours.command(data, "import", str(files), "--acl", "public")
        with _background(command) as alive:
            time.sleep(2)
            busy = lags(site, run.size(60, 10), alive)
    lines = []
    for during, found, must in (("idle server", idle, 200.0), ("during an import", busy, 1000.0)):
        for what, times in zip(("its name", "its text"), found, strict=True):
            if len(times) < 5:
                why = f"the import of {len(texts):,} texts ended after {len(times)} writes"
                lines.append(page.skipped("lag", f"write to searchable, {during}: {what}", "1 s", why))
                continue
            p50, p95 = statistics.median(times), statistics.quantiles(times, n=20)[-1]
            lines.append(
                Line(
                    row="lag",
                    work=f"write to searchable, {during}: {what}, p95",
                    beside="Elasticsearch's and OpenSearch's default refresh of 1 s",
                    must=f"p95 < {must:g} ms",
                    ratio=p95 / 1000,
                    met=p95 < must,
                    figure=p95,
                    ours=f"p95 {p95:,.0f} ms, p50 {p50:,.0f} ms",
                    theirs="up to 1,000 ms",
                    remark=(
                        f"{len(times)} documents by one caller, from sending it to the first search that finds a word "
                        f"of {what}; polled every 5 ms, {_FOUND_SECONDS:.0f} s at most."
                    ),
                )
            )
    return lines


def versions(run: Run) -> list[Line]:
    """A check-in beside a create: by one caller, in turns, each durable before its answer."""
    data, texts = run.prepare(run.folder("versions") / "data"), _small_texts(200)
    with ours.serving(data) as site:
        created, checked_in, copied = _version_times(run, site, texts, run.size(60, 5))
    lines = []
    for what, times in (("with new content", checked_in), ("of a comment alone, its content copied", copied)):
        mine, theirs = statistics.median(times), statistics.median(created)
        lines.append(
            Line(
                row="versions",
                work=f"a check-in {what}, text of about 1 kB",
                beside="a create with content on the same server",
                must=f"<= {CHECK_IN:g}x its time",
                ratio=mine / theirs,
                met=mine <= CHECK_IN * theirs,
                figure=mine,
                ours=f"{mine:.2f} ms",
                theirs=f"{theirs:.2f} ms",
                remark=f"Medians of {len(times)} requests of each kind, in turns; no tree gets more than 60 versions.",
            )
        )
    return lines


def _version_times(
    run: Run, site: Site, texts: Sequence[str], rounds: int
) -> tuple[list[float], list[float], list[float]]:
    """Create, check in with content, and check in without, in turns; the ms of each."""
    headers = {"Authorization": f"Bearer {site.signed_in()['access_token']}", "Content-Type": "text/plain"}
    times: tuple[list[float], list[float], list[float]] = ([], [], [])
    with httpx.Client(verify=site.ca_file, timeout=60) as http:

        def timed(place: int, address: str, text: str) -> str:
            began = time.perf_counter()
            sent = headers if text else {"Authorization": headers["Authorization"]}
            answer = http.post(address, content=text, headers=sent).raise_for_status()
            times[place].append(1000 * (time.perf_counter() - began))
            return str(answer.json()["properties"]["r_object_id"])

        def create(text: str) -> str:
            return timed(0, f"{site.repository}/objects?object-name=text.txt&object-type=document", text)

        trees = [create(text) for text in texts[:10]]
        for each in trees:
            http.put(f"{site.repository}/objects/{each}/lock", headers=headers).raise_for_status()
        for number in range(rounds):
            run.take_turn()
            for at, each in enumerate(trees):
                text = texts[(number * 10 + at) % len(texts)]
                create(text)
                address = f"{site.repository}/objects/{each}/versions?retain-lock=true&comment=next"
                place, text = (1, text) if number % 2 else (2, "")
                trees[at] = timed(place, address, text)
    return times


def _small_texts(count: int) -> list[str]:
    return [text[:1000] for text in passages(count)]


def _write_files(folder: Path, texts: Sequence[str]) -> None:
    for number, text in enumerate(texts):
        place = folder / f"{number // 1000:03}"
        if number % 1000 == 0:
            place.mkdir(parents=True)
        (place / f"text-{number}.txt").write_text(text, encoding="utf-8")


def _imported(data: Data, files: Path, count: int) -> tuple[float, float]:
    """Import the files into a data folder: texts a second until searchable, and CPU ms a text.

    An import that takes too long is stopped, and counts with what is searchable by then.
    """
    with ours.serving(data) as site:
        before, began = site.program.cpu_seconds(), time.perf_counter()
        command = ours.command(data, "import", str(files), "--acl", "public")
        done, used = count, 0.0
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        program = Program(process.pid)
        while process.poll() is None and time.perf_counter() - began < _IMPORT_SECONDS:
            used = program.cpu_seconds()
            time.sleep(0.02)
        took = time.perf_counter() - began
        late = process.poll() is None
        process.kill()
        said, _ = process.communicate()
        used += site.program.cpu_seconds() - before
        if not late and f"Text: {count} read" not in said:
            raise load.WrongAnswers(f"the import says: {said.strip()[:500]}")
        if late:
            feed = lxml.etree.fromstring(site.ask(site.keywords(site.signed_in()["access_token"], "")).content)
            done = int(feed.findtext(f"{_VOCABULARY}total") or 0)
            print(f"    the import was stopped after {took:.0f} s with {done} texts searchable", flush=True)
    return done / took, 1000 * used / max(1, done)


def lags(site: Site, count: int, goes_on: Callable[[], bool]) -> tuple[list[float], list[float]]:
    """Write documents one after the other; the ms until a word of each one's name, and of its text, is found."""
    named: list[float] = []
    texts: list[float] = []
    token = site.signed_in()["access_token"]
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "text/plain", "Accept": "application/xml"}
    with httpx.Client(verify=site.ca_file, timeout=60) as http:
        for _ in range(count):
            if not goes_on():
                break
            name, word = (f"w{secrets.token_hex(6)}" for _ in range(2))
            began = time.perf_counter()
            body = f"A short note that holds the word {word}."
            http.post(
                f"{site.repository}/objects?object-name={name}.txt", content=body, headers=headers
            ).raise_for_status()
            for wanted, times in ((name, named), (word, texts)):
                request = site.keywords(token, wanted)
                while True:
                    answer = http.get(request.address, headers=dict(request.headers)).raise_for_status()
                    took = time.perf_counter() - began
                    if f"{name}.txt" in answer.text or took > _FOUND_SECONDS:
                        break
                    time.sleep(0.005)
                times.append(1000 * took)
    return named, texts


@contextmanager
def _background(command: Sequence[str]) -> Iterator[Callable[[], bool]]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield lambda: process.poll() is None
    finally:
        process.kill()
        process.wait()

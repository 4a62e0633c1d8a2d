"""The repository's rows: searches beside the bare engine and OpenSearch, an import, and how soon a write is found."""

import json
import secrets
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import lxml.etree

from bench import engine, load, ours, page
from bench.engine import Searched
from bench.load import Figures, Request
from bench.ours import Site
from bench.page import Line
from bench.passages import passages, queries
from bench.peers import Missing, opensearch
from bench.peers.opensearch import OpenSearch
from bench.processes import Program
from bench.run import Run

_ATOM = "{http://www.w3.org/2005/Atom}"
_VOCABULARY = "{urn:muniment:vocab}"
_JSON = ("Content-Type", "application/json")
_CLIENTS = (1, 8)
_IMPORT_SECONDS, _IMPORTS_SECONDS = 300, 200
"""When one import is stopped, and after how much importing no further round is made."""

_FOUND_SECONDS = 20.0


@dataclass
class _Searches:
    """What the search row saw, by the number of clients."""

    ours: dict[int, list[Figures]]
    engine: dict[int, list[Searched]]
    peer: dict[int, list[Figures]]
    our_totals: list[int]
    their_totals: list[int]
    about: str = ""
    missing: str = ""


def search(run: Run) -> list[Line]:
    """AQL with ACL, total and 20 excerpts over real documents, beside the engine in process and OpenSearch."""
    texts = passages(run.size(50_000, 2_000))
    asked = queries(texts)
    seen = _searched(run, texts, asked)
    agreed = _agreement(seen.our_totals, seen.engine[1][0].totals)
    lines = []
    for clients in _CLIENTS:
        many = "s" if clients > 1 else ""
        work = f"AQL search, {len(texts):,} real documents, {clients} client{many}"
        mine, bare, theirs = seen.ours[clients], seen.engine[clients], seen.peer[clients]
        lines.append(
            page.compared(
                "search",
                f"{work}, p50",
                f"tantivy-py in process, {clients} thread{many}",
                [one.p50 for one in mine],
                [one.p50 for one in bare],
                unit=" ms",
                must=3,
                our_cpu=page.cpu(one.cpu for one in mine),
                their_cpu=page.cpu(one.cpu for one in bare),
                remark=f"{len(asked)} queries in turn, of one and two words; two workers. Totals: {agreed}.",
            )
        )
        if seen.missing:
            lines.append(page.skipped("search", f"{work}, throughput", "OpenSearch _search", ">= 1.5x", seen.missing))
            continue
        lines.append(
            page.compared(
                "search",
                f"{work}, throughput",
                f"OpenSearch {opensearch.VERSION} _search: same filter, total, highlight",
                [one.rate for one in mine],
                [one.rate for one in theirs],
                must=1.5,
                our_cpu=page.cpu(one.cpu for one in mine),
                their_cpu=page.cpu(one.cpu for one in theirs),
                versions=seen.about,
                remark=(
                    f"p50 {mine[-1].p50:.1f} and {theirs[-1].p50:.1f} ms, p99 {mine[-1].p99:.1f} and "
                    f"{theirs[-1].p99:.1f} ms; ours over TLS and behind a token, theirs plain. "
                    f"Totals: {_agreement(seen.our_totals, seen.their_totals)}."
                ),
            )
        )
    return lines


def _searched(run: Run, texts: Sequence[str], asked: Sequence[Sequence[str]]) -> _Searches:
    folder = run.folder("search")
    (folder / "texts.json").write_text(json.dumps(texts))
    (folder / "queries.json").write_text(json.dumps(asked))
    data = ours.prepare(folder / "data")
    ours.fill(data, texts)
    engine.build(folder / "texts.json", folder / "engine")
    print(f"    {len(texts):,} documents are filled in", flush=True)
    with ours.serving(data, "web.workers=2") as site:
        token = site.signed_in()["access_token"]
        searches = [site.search(token, words) for words in asked]
        seen = _Searches(_by_clients(), _by_clients(), _by_clients(), [], [])
        seen.our_totals = [_checked(site, one) for one in searches]
        load.run(searches, ["<summary"], [site.program], seconds=2, connections=8)

        def ourselves(clients: int) -> None:
            seen.ours[clients].append(_round(run, searches, "<summary", site.program, clients))

        def alone(clients: int) -> None:
            found = engine.search(folder / "engine", folder / "queries.json", clients, run.seconds)
            seen.engine[clients].append(found)

        sides = [partial(side, clients) for clients in _CLIENTS for side in (ourselves, alone)]
        try:
            with opensearch.serving(run.folder("opensearch")) as peer:
                seen.about = peer.about
                bulk(peer, "bench", texts)
                asks = [their_search(peer, words) for words in asked]
                seen.their_totals = [_their_total(one) for one in asks]
                load.run(asks, ['"highlight"'], [peer.program], seconds=run.size(30, 2), connections=8)

                def other(clients: int) -> None:
                    seen.peer[clients].append(_round(run, asks, '"highlight"', peer.program, clients))

                run.interleaved(*sides, *(partial(other, clients) for clients in _CLIENTS))
        except (Missing, RuntimeError) as why:
            seen.missing = str(why)
            run.interleaved(*sides)
    return seen


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
    about, missing = "", ""
    numbers = iter(range(1000))

    def ourselves() -> None:
        if sum(len(texts) / rate for rate, _ in mine) > _IMPORTS_SECONDS:
            return  # slow enough to be sure
        mine.append(_imported(run.folder(f"imported-{next(numbers)}"), folder / "files", len(texts)))

    def alone() -> None:
        took, used = engine.build(folder / "texts.json", folder / f"engine-{next(numbers)}")
        bare.append((len(texts) / took, 1000 * used / len(texts)))

    try:
        with opensearch.serving(run.folder("opensearch-import")) as peer:
            about = peer.about
            bulk(peer, "warm", texts[:5000])

            def other() -> None:
                before, began = peer.program.cpu_seconds(), time.perf_counter()
                bulk(peer, f"import-{next(numbers)}", texts)
                took = time.perf_counter() - began
                used = peer.program.cpu_seconds() - before
                theirs.append((len(texts) / took, 1000 * used / len(texts)))

            run.interleaved(ourselves, other, alone)
    except (Missing, RuntimeError) as why:
        missing = str(why)
        run.interleaved(ourselves, alone)
    our_cpu = page.cpu(used for _, used in mine)
    remark = "Server with the default settings, files on disk; CPU a text is that of server and command together."
    lines = [
        page.compared(
            "import",
            work,
            "bare tantivy-py, one commit",
            [rate for rate, _ in mine],
            [rate for rate, _ in bare],
            our_cpu=our_cpu,
            their_cpu=page.cpu(used for _, used in bare),
            remark="This ratio has no target: the engine keeps no content, no rows and no log.",
        )
    ]
    beside = f"OpenSearch {opensearch.VERSION} _bulk, 1,000 a request, then _refresh"
    if missing:
        return [page.skipped("import", work, beside, ">= 1x", missing), *lines]
    first = page.compared(
        "import",
        work,
        beside,
        [rate for rate, _ in mine],
        [rate for rate, _ in theirs],
        must=1,
        our_cpu=our_cpu,
        their_cpu=page.cpu(used for _, used in theirs),
        versions=about,
        remark=remark + " Their texts are sent from memory over one connection, and their CPU leaves that client out.",
    )
    return [first, *lines]


def lag(run: Run) -> list[Line]:
    """How long after a caller sends a document a search finds it, on an idle server and while an import runs."""
    data = ours.prepare(run.folder("lag") / "data")
    texts = _small_texts(run.size(20_000, 1_000))
    files = run.folder("lag-files") / "files"
    _write_files(files, texts)
    with ours.serving(data) as site:
        idle = _lags(site, run.size(100, 20), lambda: True)
        command = ours.command(data, "import", str(files), "--acl", "public")
        with _background(command) as alive:
            time.sleep(2)
            busy = _lags(site, run.size(60, 10), alive)
    lines = []
    for during, found, must in (("idle server", idle, 200.0), ("during an import", busy, 1000.0)):
        for what, times in zip(("its name", "its text"), found, strict=True):
            if len(times) < 5:
                why = f"the import of {len(texts):,} texts ended after {len(times)} writes"
                lines.append(
                    page.skipped("lag", f"write to searchable, {during}: {what}", "1 s", f"< {must:g} ms", why)
                )
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
                    ours=f"p95 {p95:,.0f} ms, p50 {p50:,.0f} ms",
                    theirs="up to 1,000 ms",
                    remark=(
                        f"{len(times)} documents by one caller, from sending it to the first search that finds a word "
                        f"of {what}; polled every 5 ms, {_FOUND_SECONDS:.0f} s at most."
                    ),
                )
            )
            print(f"    {lines[-1].work}: {lines[-1].ours}", flush=True)
    return lines


def _by_clients() -> dict[int, list[Any]]:
    return {clients: [] for clients in _CLIENTS}


def _round(run: Run, searches: Sequence[Request], wanted: str, program: Program, clients: int) -> Figures:
    return load.run(searches, [wanted], [program], seconds=run.seconds, connections=clients)


def _checked(site: Site, request: Request) -> int:
    """Look into one of our feeds: a total, as many entries as it allows, an excerpt in each; give the total."""
    feed = lxml.etree.fromstring(site.ask(request).content)
    total = int(feed.findtext(f"{_VOCABULARY}total") or -1)
    entries = feed.findall(f"{_ATOM}entry")
    if total < 1 or len(entries) != min(20, total) or not all(one.findtext(f"{_ATOM}summary") for one in entries):
        raise load.WrongAnswers(f"a feed of {total} has {len(entries)} entries, or one without an excerpt")
    return total


def their_search(peer: OpenSearch, words: Sequence[str]) -> Request:
    document = {
        "size": 20,
        "track_total_hits": True,
        "_source": ["name", "size"],
        "query": {
            "bool": {
                "must": [{"match": {"body": {"query": " ".join(words), "operator": "and"}}}],
                "filter": [
                    {"term": {"type": "document"}},
                    {"terms": {"acl": engine.READABLE}},
                    {"range": {"size": {"gte": ours.SIZES[0], "lte": ours.SIZES[1]}}},
                ],
            }
        },
        "highlight": {"fields": {"body": {"number_of_fragments": 1, "fragment_size": 200}}},
    }
    return Request("POST", f"{peer.base}/bench/_search", json.dumps(document), (_JSON,))


def _their_total(request: Request) -> int:
    answer = httpx.post(request.address, content=request.body, headers=dict(request.headers), timeout=60)
    hits = answer.raise_for_status().json()["hits"]
    total = int(hits["total"]["value"])
    if len(hits["hits"]) != min(20, total) or not all("highlight" in one for one in hits["hits"]):
        raise load.WrongAnswers(f"OpenSearch: {total} hits, {len(hits['hits'])} given, or one without a highlight")
    return total


def _agreement(mine: Sequence[int], theirs: Sequence[int]) -> str:
    """Say how far the totals of the same queries agree: the stemmers are not the same."""
    apart = sum(abs(one - other) for one, other in zip(mine, theirs, strict=True))
    return f"{sum(mine):,} hits and {sum(theirs):,} in all, {100 * apart / max(1, sum(mine)):.1f} % apart"


def bulk(peer: OpenSearch, index: str, texts: Sequence[str]) -> None:
    """Index the texts by ``_bulk`` and wait until all of them are found."""
    keyword = {"type": "keyword"}
    mapping = {
        "settings": {"number_of_shards": 1, "number_of_replicas": 0},
        "mappings": {
            "dynamic": "strict",
            "properties": {
                "body": {"type": "text", "analyzer": "english", "index_options": "offsets"},
                "acl": keyword,
                "type": keyword,
                "name": keyword,
                "size": {"type": "long"},
            },
        },
    }
    with httpx.Client(base_url=peer.base, timeout=120) as http:
        http.put(f"/{index}", json=mapping).raise_for_status()
        for start in range(0, len(texts), 1000):
            lines = []
            for number in range(start, min(start + 1000, len(texts))):
                text = texts[number]
                kept = {"body": text, "acl": f"acl-{number % ours.ACLS}", "type": "document"}
                kept |= {"name": f"passage-{number}.txt"}
                lines += ['{"index":{}}', json.dumps({**kept, "size": len(text.encode())})]
            headers = {"Content-Type": "application/x-ndjson"}
            answer = http.post(f"/{index}/_bulk", content="\n".join(lines) + "\n", headers=headers)
            if answer.raise_for_status().json()["errors"]:
                raise load.WrongAnswers(f"OpenSearch refused some texts: {answer.text[:300]}")
        http.post(f"/{index}/_refresh").raise_for_status()
        count = http.get(f"/{index}/_count").raise_for_status().json()["count"]
        if count != len(texts):
            raise load.WrongAnswers(f"OpenSearch holds {count} of {len(texts)} texts")


def _small_texts(count: int) -> list[str]:
    return [text[:1000] for text in passages(count)]


def _write_files(folder: Path, texts: Sequence[str]) -> None:
    for number, text in enumerate(texts):
        place = folder / f"{number // 1000:03}"
        if number % 1000 == 0:
            place.mkdir(parents=True)
        (place / f"text-{number}.txt").write_text(text, encoding="utf-8")


def _imported(folder: Path, files: Path, count: int) -> tuple[float, float]:
    """Import the files into a data folder of its own: texts a second until searchable, and CPU ms a text.

    An import that takes too long is stopped, and counts with what is searchable by then.
    """
    data = ours.prepare(folder / "data")
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


def _lags(site: Site, count: int, goes_on: Callable[[], bool]) -> tuple[list[float], list[float]]:
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

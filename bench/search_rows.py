"""The searches: every kind of ``search_kinds`` over the same documents, beside the bare engine and OpenSearch."""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import lxml.etree

from bench import engine, load, ours, page
from bench.engine import Searched
from bench.load import Figures, Request
from bench.ours import Site
from bench.page import Line
from bench.passages import passages
from bench.peers import Missing, opensearch, opensearch_index
from bench.peers.opensearch import OpenSearch
from bench.run import Run
from bench.search_kinds import CLIENTS, KINDS, WORDS, Kind

ROWS = tuple(kind.row for kind in KINDS)

_ATOM = "{http://www.w3.org/2005/Atom}"
_VOCABULARY = "{urn:muniment:vocab}"
_EXCERPT = "<summary"


@dataclass
class _Seen:
    """What was seen of one kind, by the number of clients: ours, the engine with and without excerpts, OpenSearch."""

    kind: Kind
    asked: list[list[str]]
    queries: Path
    ours: dict[int, list[Figures]] = field(default_factory=lambda: {clients: [] for clients in CLIENTS})
    engine: dict[int, list[Searched]] = field(default_factory=lambda: {clients: [] for clients in CLIENTS})
    unexcerpted: dict[int, list[Searched]] = field(default_factory=lambda: {clients: [] for clients in CLIENTS})
    peer: dict[int, list[Figures]] = field(default_factory=lambda: {clients: [] for clients in CLIENTS})
    our_totals: list[int] = field(default_factory=list)
    their_totals: list[int] = field(default_factory=list)


def search(run: Run) -> Iterator[Line]:
    """Each wanted kind with ACL, total and 20 excerpts over real documents, beside the engine and OpenSearch."""
    texts = passages(run.size(50_000, 2_000))
    folder = run.folder("search")
    (folder / "texts.json").write_text(json.dumps(texts))
    data = run.prepare(folder / "data")
    ours.fill(data, texts)
    ours.join_many(data, 1_000)
    if not run.alone:
        engine.build(folder / "texts.json", folder / "engine", properties=True)
    print(f"    {len(texts):,} documents are filled in", flush=True)
    every = []
    for kind in KINDS:
        if kind.row in run.rows:
            every.append(_Seen(kind, kind.asked(texts), folder / f"{kind.row}.json"))
            every[-1].queries.write_text(json.dumps(every[-1].asked))
    peer, about, missing = None, "", ""
    with ExitStack() as stack:
        site = stack.enter_context(ours.serving(data, "web.workers=2"))
        try:
            run.need_peers()
            peer = stack.enter_context(opensearch.serving(run.folder("opensearch")))
            opensearch_index.bulk(peer, "bench", texts, properties=True)
            about = peer.about
        except (Missing, RuntimeError) as why:
            peer, missing = None, page.why_skipped(str(why))
        for seen in every:
            print(f"    {seen.kind.row}", flush=True)
            _measure(run, folder / "engine", site, peer, seen)
            yield from _lines(seen, f"{len(texts):,} real documents", about, missing)


def checked(site: Site, request: Request) -> int:
    """Look into one of our feeds: a total, as many entries as it allows, an excerpt in each; give the total."""
    feed = lxml.etree.fromstring(site.ask(request).content)
    total = int(feed.findtext(f"{_VOCABULARY}total") or -1)
    entries = feed.findall(f"{_ATOM}entry")
    if total < 1 or len(entries) != min(20, total) or not all(one.findtext(f"{_ATOM}summary") for one in entries):
        raise load.WrongAnswers(f"a feed of {total} has {len(entries)} entries, or one without an excerpt")
    return total


def _measure(run: Run, index: Path, site: Site, peer: OpenSearch | None, seen: _Seen) -> None:
    kind, asked = seen.kind, seen.asked
    token = site.signed_in(kind.person)["access_token"]
    searches = [site.aql(token, kind.ours(words), kind.more, kind.needed) for words in asked]
    seen.our_totals = [checked(site, one) for one in searches]
    load.run(searches, [_EXCERPT], [site.program], seconds=2, connections=8)

    def ourselves() -> None:
        for clients, into in seen.ours.items():
            into.append(load.run(searches, [_EXCERPT], [site.program], seconds=run.seconds, connections=clients))

    def alone(clients: int, excerpts: bool) -> None:
        into = seen.engine if excerpts else seen.unexcerpted
        into[clients].append(engine.search(index, kind.row, seen.queries, clients, run.seconds, excerpts=excerpts))

    sides = [
        side
        for clients in CLIENTS
        for side in (partial(alone, clients, True), partial(alone, clients, False))
        if kind is WORDS or side.args != (clients, False)
    ]
    if peer is not None:
        asks = [opensearch_index.search(peer, kind.theirs(words), kind.facets, kind.sorts) for words in asked]
        seen.their_totals = [opensearch_index.total(one) for one in asks]
        theirs = [peer.program]
        load.run(asks, ['"highlight"'], theirs, seconds=run.size(30 if kind is WORDS else 10, 2), connections=8)

        def other(clients: int) -> None:
            seen.peer[clients].append(load.run(asks, ['"highlight"'], theirs, seconds=run.seconds, connections=clients))

        sides += [partial(other, clients) for clients in CLIENTS]
    run.interleaved(ourselves, *sides)


def _lines(seen: _Seen, documents: str, about: str, missing: str) -> list[Line]:
    kind = seen.kind
    lines = []
    for clients in CLIENTS:
        many = "s" if clients > 1 else ""
        work = f"{kind.work}, {documents}, {clients} client{many}"
        bare = f"tantivy-py in process, {clients} thread{many}"
        mine, theirs = seen.ours[clients], seen.peer[clients]
        agreed = _agreement(seen.our_totals, [total for one in seen.engine[1][:1] for total in one.totals])
        remark = f"{len(seen.asked)} queries in turn, {kind.about}; two workers. Totals: {agreed}."
        for beside, found, target in (
            (bare, seen.engine[clients], kind.p50.get(clients)),
            (f"{bare}, no excerpts", seen.unexcerpted[clients], None),
        ):
            if not found and target is None:
                continue
            lines.append(
                page.compared(
                    kind.row,
                    f"{work}, p50",
                    beside,
                    [one.p50 for one in mine],
                    [one.p50 for one in found],
                    unit=" ms",
                    target=target,
                    our_cpu=page.cpu(one.cpu for one in mine),
                    their_cpu=page.cpu(one.cpu for one in found),
                    remark=remark if target else "Ours makes excerpts all the same, so this ratio has no target.",
                )
            )
        target = kind.throughput.get(clients)
        lines.append(
            page.compared(
                kind.row,
                f"{work}, throughput",
                f"OpenSearch {opensearch.VERSION} _search: same filter, total, highlight",
                [one.rate for one in mine],
                [one.rate for one in theirs],
                target=target,
                our_cpu=page.cpu(one.cpu for one in mine),
                their_cpu=page.cpu(one.cpu for one in theirs),
                versions=about,
                remark=missing
                or (
                    f"{load.percentiles(mine, theirs)}; ours over TLS and behind a token, theirs plain. "
                    f"Totals: {_agreement(seen.our_totals, seen.their_totals)}."
                ),
            )
        )
    return lines


def _agreement(mine: Sequence[int], theirs: Sequence[int]) -> str:
    """Say how far the totals of the same queries agree, if theirs were asked for: the stemmers are not the same."""
    if not theirs:
        return f"{sum(mine):,} hits in all"
    apart = sum(abs(one - other) for one, other in zip(mine, theirs, strict=True))
    return f"{sum(mine):,} hits and {sum(theirs):,} in all, {100 * apart / max(1, sum(mine)):.1f} % apart"

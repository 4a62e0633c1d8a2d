"""Our index in OpenSearch, beside OpenSearch itself: the same node, one after the other."""

import statistics
import time
from collections.abc import Iterator
from functools import partial

from bench import load, ours, page
from bench.load import Figures
from bench.ours import Data
from bench.page import Line, at_least, at_most
from bench.passages import passages
from bench.peers import Missing, opensearch, opensearch_index
from bench.peers.opensearch import OpenSearch
from bench.run import Run
from bench.search_kinds import CLIENTS, WORDS
from bench.search_rows import checked
from bench.write_rows import lags
from muniment.ground import clock
from muniment.installation import backends, initialise
from muniment.repository.search.agent import agent
from muniment.repository.store import repositories

SEARCH, INDEXING, LAG = "search-opensearch-engine", "index-opensearch-engine", "lag-opensearch-engine"
ROWS = (SEARCH, INDEXING, LAG)

_SEARCH = at_most(2.0, 1.5)
_INDEXING = at_least(0.5)
_LAG_MS = 1000.0


def on_opensearch(run: Run) -> Iterator[Line]:
    """Search, index and wait, each through our door over OpenSearch, beside what OpenSearch takes for the same."""
    texts = passages(run.size(50_000, 2_000))
    try:
        run.need_peers()
        with opensearch.serving(run.folder("opensearch-engine")) as peer:
            yield from _measured(run, peer, texts)
    except Missing as why:
        for row in ROWS:
            yield page.skipped(row, "through our door over OpenSearch", "OpenSearch itself", page.why_skipped(str(why)))


def _measured(run: Run, peer: OpenSearch, texts: list[str]) -> Iterator[Line]:
    data = run.prepare(run.folder("search-opensearch-engine") / "data", *peer.keeps_our_index)
    ours.fill(data, texts)
    ours.join_many(data, 1_000)
    opensearch_index.bulk(peer, "bench", texts, properties=True)
    if SEARCH in run.rows:
        yield from _searches(run, peer, data, texts)
    if INDEXING in run.rows:
        yield _indexing(run, peer, data, texts)
    if LAG in run.rows:
        yield _waiting(run, data)


def _searches(run: Run, peer: OpenSearch, data: Data, texts: list[str]) -> Iterator[Line]:
    asked = WORDS.asked(texts)
    mine: dict[int, list[Figures]] = {clients: [] for clients in CLIENTS}
    theirs: dict[int, list[Figures]] = {clients: [] for clients in CLIENTS}
    with ours.serving(data, "web.workers=2") as site:
        token = site.signed_in(WORDS.person)["access_token"]
        searches = [site.aql(token, WORDS.ours(words), WORDS.more, WORDS.needed) for words in asked]
        totals = sum(checked(site, one) for one in searches)
        asks = [opensearch_index.search(peer, WORDS.theirs(words), WORDS.facets, WORDS.sorts) for words in asked]
        their_totals = sum(map(opensearch_index.total, asks))
        both = [site.program, peer.program]

        def ask(clients: int, *, our_side: bool, seconds: float) -> Figures:
            if our_side:
                return load.run(searches, ["<summary"], both, seconds=seconds, connections=clients)
            return load.run(asks, ['"highlight"'], [peer.program], seconds=seconds, connections=clients)

        for our_side in (True, False):
            ask(8, our_side=our_side, seconds=run.size(20, 2))

        def side(clients: int, *, our_side: bool) -> None:
            into = mine if our_side else theirs
            into[clients].append(ask(clients, our_side=our_side, seconds=run.seconds))

        for clients in CLIENTS:
            run.interleaved(partial(side, clients, our_side=True), partial(side, clients, our_side=False))
    for clients in CLIENTS:
        yield page.compared(
            SEARCH,
            f"words with ACL, total and 20 excerpts, {len(texts):,} real documents, {clients} client(s), p50",
            f"OpenSearch {opensearch.VERSION} _search: same filter, total, highlight",
            [one.p50 for one in mine[clients]],
            [one.p50 for one in theirs[clients]],
            unit=" ms",
            target=_SEARCH,
            our_cpu=page.cpu(one.cpu for one in mine[clients]),
            their_cpu=page.cpu(one.cpu for one in theirs[clients]),
            versions=peer.about,
            remark=f"{load.percentiles(mine[clients], theirs[clients])}; {totals:,} hits and {their_totals:,} in all. "
            "Ours over TLS, behind a token and the same node; our CPU includes the node's.",
        )


def _indexing(run: Run, peer: OpenSearch, data: Data, texts: list[str]) -> Line:
    data_folder = data.opened()
    mine, theirs = list[float](), list[float]()
    with data_folder.database("repository") as database:
        with database.read() as cx:
            held = repositories.find(cx, initialise.REPOSITORY)

        def rebuild() -> None:
            began = time.monotonic()
            agent.rebuild(database, held, backends.engine(data_folder.installation), clock.now)
            mine.append(len(texts) / (time.monotonic() - began))

        def bulk() -> None:
            began = time.monotonic()
            opensearch_index.bulk(peer, f"bulk-{len(theirs)}", texts, properties=True)
            theirs.append(len(texts) / (time.monotonic() - began))

        run.interleaved(rebuild, bulk)
    return page.compared(
        INDEXING,
        f"the agent makes an index of {len(texts):,} documents",
        f"OpenSearch {opensearch.VERSION} _bulk of the same texts, 1,000 a request, then _refresh",
        mine,
        theirs,
        target=_INDEXING,
        versions=peer.about,
        remark="Ours reads rows and texts from the database, and sends four fields of words beside the text.",
    )


def _waiting(run: Run, data: Data) -> Line:
    with ours.serving(data) as site:
        times, _ = lags(site, run.size(100, 20), lambda: True)
    p50, p95 = statistics.median(times), statistics.quantiles(times, n=20)[-1]
    return Line(
        row=LAG,
        work="write to searchable, idle server: its name, p95",
        beside="OpenSearch's default refresh of 1 s",
        must=f"p95 < {_LAG_MS:g} ms",
        ratio=p95 / 1000,
        met=p95 < _LAG_MS,
        figure=p95,
        ours=f"p95 {p95:,.0f} ms, p50 {p50:,.0f} ms",
        theirs="up to 1,000 ms",
        remark=f"{len(times)} documents by one caller, until a search finds a word of its name.",
    )

"""The page to search from: a page of hits beside the page with the empty box, and beside the feed of the same hits.

And what it asks while somebody types: suggestions, beside the engine that completes the same words.
"""

import json
import re
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import httpx

from bench import engine, load, ours, page
from bench.engine import Searched
from bench.load import Figures, Request
from bench.ours import PARTITION, PERSON, Data, Site
from bench.page import Line
from bench.passages import passages
from bench.run import Run
from bench.search_kinds import PREFIX, WORDS

ROWS = ("search-page", "suggestion")

_WANTED = {"hits": ['class="excerpt"'], "bare": ["Saved searches"], "feed": ["<summary"]}


def search_page(run: Run) -> Iterator[Line]:
    """The rows of the page that are wanted, over the same documents."""
    texts = passages(run.size(50_000, 2_000))
    folder = run.folder("search-page")
    data = run.prepare(folder / "data")
    ours.fill(data, texts)
    if "search-page" in run.rows:
        yield from _hits(run, data, texts)
    if "suggestion" in run.rows:
        (folder / "texts.json").write_text(json.dumps(texts))
        if not run.alone:
            engine.build(folder / "texts.json", folder / "engine", properties=True)
        yield _suggestions(run, folder, data, texts)


def _hits(run: Run, data: Data, texts: Sequence[str]) -> Iterator[Line]:
    """A page of 20 hits with excerpts, total and five facets, beside the page with the empty box, by one browser."""
    found: dict[str, list[Figures]] = {side: [] for side in _WANTED}
    with ours.serving(data, "web.workers=2", f"repository.search_page_client={ours.CLIENT}") as site:
        cookie, token = _signed_in(site), site.signed_in()["access_token"]
        questions = [" ".join(words) for words in WORDS.asked(texts)]
        addresses = [f"{site.base}/search?{httpx.QueryParams({'q': one})}" for one in questions]
        asked = {
            "hits": [Request("GET", one, "", (cookie,)) for one in addresses],
            "bare": [Request("GET", f"{site.base}/search", "", (cookie,))],
            "feed": [site.keywords(token, one) for one in questions],
        }

        def ask(side: str) -> None:
            figures = load.run(asked[side], _WANTED[side], [site.program], seconds=run.seconds, connections=1)
            found[side].append(figures)

        load.run(asked["hits"], _WANTED["hits"], [site.program], seconds=2, connections=1)
        run.interleaved(*(partial(ask, side) for side in asked))
    for beside, side, target in (
        ("the page with the empty box", "bare", page.at_most(3)),
        ("the feed of the same hits, with a token", "feed", None),
    ):
        yield page.compared(
            "search-page",
            f"a page of 20 hits, {len(texts):,} real documents, 1 browser, p50",
            beside,
            [one.p50 for one in found["hits"]],
            [one.p50 for one in found[side]],
            unit=" ms",
            target=target,
            our_cpu=page.cpu(one.cpu for one in found["hits"]),
            their_cpu=page.cpu(one.cpu for one in found[side]),
            remark=f"{len(questions)} queries in turn; the page has excerpts, a total and five facets. Two workers.",
        )


def _suggestions(run: Run, folder: Path, data: Data, texts: Sequence[str]) -> Line:
    """Ten completions of five letters, in the words that a caller may see."""
    beginnings = [start for (start,) in PREFIX.asked(texts)]
    (folder / "beginnings.json").write_text(json.dumps(beginnings))
    mine, alone = list[Figures](), list[Searched]()
    with ours.serving(data, "web.workers=2") as site:
        token = site.signed_in()["access_token"]
        asked = [site.suggestion(token, start) for start in beginnings]

        def ask(seconds: float) -> None:
            mine.append(load.run(asked, ['"completions"'], [site.program], seconds=seconds, connections=1))

        def complete() -> None:
            alone.append(engine.complete(folder / "engine", folder / "beginnings.json", run.seconds))

        ask(2)
        mine.clear()
        run.interleaved(partial(ask, run.seconds), complete)
    return page.compared(
        "suggestion",
        f"a suggestion while somebody types, {len(texts):,} real documents, 1 client, p50",
        "tantivy-py in process, 1 thread",
        [one.p50 for one in mine],
        [one.p50 for one in alone],
        unit=" ms",
        target=page.at_most(2),
        our_cpu=page.cpu(one.cpu for one in mine),
        their_cpu=page.cpu(one.cpu for one in alone),
        remark=f"{len(beginnings)} beginnings of five letters, which "
        f"{sum(sum(one.totals) for one in alone[:1]):,} words have. Two workers.",
    )


def _signed_in(site: Site) -> tuple[str, str]:
    """Sign in by the form; give the header with the cookie."""
    with httpx.Client(base_url=site.base, verify=site.ca_file, timeout=60) as http:
        token = re.search(r'name="csrf" value="([^"]+)"', http.get("/search/sign-in").text)
        if token is None:
            raise load.WrongAnswers("the sign-in page has no form")
        form = {"csrf": token[1], "username": f"{PERSON}@{PARTITION}", "password": site.data.secret}
        answer = http.post("/search/sign-in", data=form)
        if answer.status_code != 303:
            raise load.WrongAnswers(f"the sign-in answers {answer.status_code}")
        return "Cookie", f"__Host-muniment-search={http.cookies['__Host-muniment-search']}"

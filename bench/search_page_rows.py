"""The page to search from: a page of hits beside the page with the empty box, and beside the feed of the same hits."""

import re
from collections.abc import Iterator
from functools import partial

import httpx

from bench import load, ours, page
from bench.load import Figures, Request
from bench.ours import PARTITION, PERSON, Site
from bench.page import Line
from bench.passages import passages
from bench.run import Run
from bench.search_kinds import WORDS

ROWS = ("search-page",)

_WANTED = {"hits": ['class="excerpt"'], "bare": ["Saved searches"], "feed": ["<summary"]}


def search_page(run: Run) -> Iterator[Line]:
    """A page of 20 hits with excerpts, total and five facets, beside the page with the empty box, by one browser."""
    texts = passages(run.size(50_000, 2_000))
    data = ours.prepare(run.folder("search-page") / "data")
    ours.fill(data, texts)
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

"""What people type: the slowest answers beside the usual ones, over short texts and a few very long ones."""

import random
from collections.abc import Iterator, Sequence

from bench import load, ours, page
from bench.load import Figures
from bench.page import Line
from bench.passages import passages, queries
from bench.run import Run

ROW = "typed"

_LONG = 100
"""One document in so many is very long."""

_PARTS = 120
"""How many passages a very long document has: about 30,000 words."""

_ROUNDS = 4
"""A round is so many times as long as that of other rows: it asks every question often, and a hundredth are few."""

_CODES = ("DN 50", "PN 16", "M 12", "A4", "utf-8", "e-mail", "co-operation", "x86-64", "1,234", "2.5.1")
"""What the words of some questions stand beside."""


def typed(run: Run) -> Iterator[Line]:
    """The slowest hundredth of typed questions beside the usual one. Each has a total and 20 excerpts."""
    texts = passages(run.size(5_000, 500))
    texts = [" ".join(texts[at : at + _PARTS]) if at % _LONG == 0 else text for at, text in enumerate(texts)]
    data = run.prepare(run.folder("typed") / "data")
    ours.fill(data, texts)
    questions = _questions(texts)
    found: list[Figures] = []
    with ours.serving(data, "web.workers=1") as site:
        token = site.signed_in()["access_token"]
        asked = [site.keywords(token, one) for one in questions]
        # The one worker has met every question before any is counted.
        for one in asked * 2:
            site.ask(one)
        long = _ROUNDS * run.seconds
        run.interleaved(lambda: found.append(load.run(asked, ["<feed"], [site.program], seconds=long, connections=1)))
    yield page.compared(
        ROW,
        f"typed questions, {len(texts):,} real documents, 1 client, p99",
        "their p50",
        [one.p99 for one in found],
        [one.p50 for one in found],
        unit=" ms",
        target=page.at_most(5),
        our_cpu=page.cpu(one.cpu for one in found),
        remark=f"{len(questions)} questions in turn, each asked twice before; one document in {_LONG} has about 30,000 "
        "words. One worker.",
    )


def _questions(texts: Sequence[str]) -> list[str]:
    """List words, pairs and sentences of the texts, and words beside a code, as people type them."""
    chance = random.Random(5)
    words = queries(texts)
    sentences = [" ".join(chance.choice(texts).split()[20:28]) for _ in range(16)]
    return [*map(" ".join, words), *sentences, *(f"{words[at][0]} {code}" for at, code in enumerate(_CODES)), *_CODES]

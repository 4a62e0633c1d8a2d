"""A search with meaning: a typed question of eight words, beside the same work in process.

The texts are real passages and their real vectors; or, where they are asked for, a million made-up vectors.
"""

import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import partial

import numpy as np
import sqlalchemy as sa

from bench import load, ours, page
from bench.load import Figures
from bench.ours import PARTITION, PERSON, SEEN, Data
from bench.page import Line
from bench.passages import passages
from bench.peers import Missing
from bench.run import Run
from bench.search_kinds import questions
from muniment.database.connections import Database
from muniment.ground import clock
from muniment.installation import backends, initialise
from muniment.installation.data_folder import DataFolder
from muniment.repository.search.agent import agent
from muniment.repository.search.answering import results
from muniment.repository.search.answering.cache import SearchCache
from muniment.repository.search.answering.inquiry import Inquiry, SearchQuestion
from muniment.repository.search.aql import keywords
from muniment.repository.search.aql.tree import Fulltext, Query, QueryLimits
from muniment.repository.search.meaning import embeddings, model
from muniment.repository.search.meaning.embedder import Embedder
from muniment.repository.search.meaning.embeddings import DIMENSIONS
from muniment.repository.search.meaning.passages import digest, heading
from muniment.repository.search.meaning.process import EmbeddingProcess
from muniment.repository.store import repositories
from muniment.repository.store.objects import inventory
from muniment.repository.store.permissions.principals import Principals

ROWS = ("meaning",)
MADE_UP_ROWS = ("meaning-growth",)

_BY_MEANING = ("repository.meaning=true", "repository.meaning_vectors=2000000")
_VECTORS_OF_EACH = 20


def meaning(run: Run) -> Iterator[Line]:
    """The row over real passages and their real vectors."""
    texts, data = _filled(run, "meaning", run.size(10_000, 300))
    installation = data.opened().installation
    began = time.monotonic()
    with data.opened().database("repository") as database:
        with closing(EmbeddingProcess(model.ready(installation.models))) as process:
            embedder = Embedder(database, process, clock.now)
            while embedder.advance():
                pass
            embedder.release()
        rate = len(texts) / (time.monotonic() - began)
        _rebuild(data, database)
    yield _compared(run, "meaning", data, texts, f"{len(texts):,} real passages, embedded at {rate:.0f} a second")


def growth(run: Run) -> Iterator[Line]:
    """The row over made-up vectors, so many that a search takes its time to compare them."""
    texts, data = _filled(run, "meaning-growth", run.size(50_000, 300))
    random = np.random.default_rng(1)
    with data.opened().database("repository") as database:
        with database.read() as cx:
            held = repositories.find(cx, initialise.REPOSITORY)
        after = 0
        while True:
            with database.begin() as cx:
                some = inventory.next_objects(cx, held.id, after, 5_000)
                if not some:
                    break
                after = some[-1].seq
                made_up = random.integers(-127, 128, (len(some), _VECTORS_OF_EACH * DIMENSIONS), np.int8)
                rows = [
                    {"object_id": each.id, "digest": b"", "vectors": vectors.tobytes()}
                    for each, vectors in zip(some, made_up, strict=True)
                ]
                for row, each in zip(rows, some, strict=True):
                    row["digest"] = digest(heading(each), texts[_number(each.name)])
                cx.execute(sa.insert(embeddings.embeddings), rows)
        _rebuild(data, database)
    yield _compared(run, "meaning-growth", data, texts, f"{len(texts) * _VECTORS_OF_EACH:,} made-up vectors")


def _filled(run: Run, name: str, size: int) -> tuple[list[str], Data]:
    try:
        model.check()
    except model.ModelMissing as error:
        raise Missing(str(error)) from error
    texts = passages(size)
    data = run.prepare(run.folder(name) / "data")
    ours.fill(data, texts)
    return texts, data


def _number(name: str) -> int:
    """Return which passage a document holds; its cabinet holds the first one for all that it matters."""
    number = name.removeprefix("passage-").removesuffix(".txt")
    return int(number) if number.isdigit() else 0


def _rebuild(data: Data, database: Database) -> None:
    with database.read() as cx:
        held = repositories.find(cx, initialise.REPOSITORY)
    agent.rebuild(database, held, backends.engine(data.opened().installation), clock.now)


def _compared(run: Run, row: str, data: Data, texts: Sequence[str], what: str) -> Line:
    asked_words = [" ".join(words) for words in questions(texts)]
    served, alone = list[Figures](), list[float]()
    in_process = _InProcess(data, asked_words)
    with ours.serving(data, "web.workers=1", *_BY_MEANING) as site:
        token = site.signed_in()["access_token"]
        asked = [site.keywords(token, one) for one in asked_words]

        def ask(seconds: float) -> None:
            served.append(load.run(asked, ["<summary"], [site.program], seconds=seconds, connections=1))

        ask(3)  # The worker loads the model and the vectors.
        served.clear()
        run.interleaved(partial(ask, run.seconds), lambda: alone.append(in_process.p50(run.seconds)))
    in_process.close()
    return page.compared(
        row,
        f"a typed question of eight words, by meaning, {what}, 1 client, p50",
        "the same work in process, 1 thread",
        [one.p50 for one in served],
        alone,
        unit=" ms",
        target=page.at_most(2),
        our_cpu=page.cpu(one.cpu for one in served),
        remark=f"{len(asked_words)} questions in turn; each is turned into a vector once. One worker.",
    )


class _InProcess:
    """The questions of one caller, asked by a function call."""

    def __init__(self, data: Data, asked: Sequence[str]) -> None:
        data_folder = DataFolder(data.folder, None, (*data.overrides, *_BY_MEANING))
        installation = data_folder.installation
        self._database = Database(installation.database_url("repository"))
        with self._database.read() as cx:
            self._repository = repositories.find(cx, initialise.REPOSITORY)
        self._index = backends.reader(installation, self._repository)
        self._memory = SearchCache(meaning=backends.meaning(installation))
        groups = frozenset(f"group-{number}@{PARTITION}" for number in range(SEEN))
        self._caller = Principals(f"{PERSON}@{PARTITION}", groups)
        limits = QueryLimits()
        self._questions = [
            SearchQuestion(Query(condition=Fulltext(keywords.read(one, limits))), 1, 100, words="auto") for one in asked
        ]
        self._ask(self._questions[0])

    def p50(self, seconds: float) -> float:
        """Ask for so many seconds, and return the median time of an answer in milliseconds."""
        times, end = list[float](), time.monotonic() + seconds
        while time.monotonic() < end:
            began = time.perf_counter()
            self._ask(self._questions[len(times) % len(self._questions)])
            times.append((time.perf_counter() - began) * 1000)
        return statistics.median(times)

    def close(self) -> None:
        """Close the index and the database."""
        self._index.close()
        self._database.close()

    def _ask(self, question: SearchQuestion) -> None:
        snapshot = self._index.snapshot()
        with self._database.read() as cx:
            who = (cx, snapshot, self._repository, self._caller, clock.now())
            page_of_hits = results.search(Inquiry(*who, memory=self._memory, question=question))
        if not page_of_hits.hits:
            raise load.WrongAnswers("a question found nothing")

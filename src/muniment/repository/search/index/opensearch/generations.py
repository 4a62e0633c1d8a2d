"""The engine in OpenSearch: a repository has an index for each generation, and an alias that names one."""

import socket
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import structlog

from muniment.ground import locks
from muniment.ground.clock import SECOND, Instant
from muniment.repository.index_options import OpenSearchOptions
from muniment.repository.refusals import InUse
from muniment.repository.search.analysis import compounds, languages
from muniment.repository.search.analysis.analysis import Analyser
from muniment.repository.search.analysis.languages import LANGUAGES
from muniment.repository.search.index.contract import Index, IndexWriter, RepositoryIndex
from muniment.repository.search.index.opensearch import fields
from muniment.repository.search.index.opensearch.client import (
    Cluster,
    ClusterAway,
    Foreign,
    Missing,
    Refused,
    as_refusals,
)
from muniment.repository.search.index.opensearch.generation import About, Site
from muniment.repository.search.index.opensearch.snapshot import OpenSearchIndex
from muniment.repository.search.index.opensearch.writer import OpenSearchWriter, sweep
from muniment.repository.store.repositories import Repository

_ABANDONED: Instant = 3600 * SECOND
"""A generation that is not current, and was neither written nor current for so long, is swept."""

log = structlog.get_logger("muniment.repository.index")


class OpenSearchEngine:
    """All indexes in one cluster (an Engine).

    ``folder`` holds the locks of this machine. ``owner`` gives a name that no other installation has; it is asked late.
    ``language`` is of repositories without one.
    """

    def __init__(
        self,
        folder: Path,
        options: OpenSearchOptions,
        owner: Callable[[], str],
        clock: Callable[[], Instant],
        *,
        language: str = "English",
        others: Collection[str] = (),
        stop_words: Collection[str] = (),
    ) -> None:
        self._folder, self._options, self._owner, self._clock = folder, options, owner, clock
        self._language, self._others, self._stop_words = language, others, stop_words
        self._cluster = Cluster(options)

    def languages(self) -> Sequence[str]:
        return sorted(LANGUAGES)

    def index(self, repository: Repository) -> RepositoryIndex:
        site = Site(self._cluster, self._options, repository.id, self._owner(), self._clock)
        language = repository.language or self._language
        return ClusterIndex(site, self._folder / str(repository.id), language, self._others, self._stop_words)

    def follower(self) -> str:
        return self._owner()[:32]

    @contextmanager
    def sole_agent(self) -> Iterator[str]:
        refusal = f"Another index agent is at work on {self._folder}: stop it first, or let it do the work."
        with _alone(self._folder / "agent.lock", refusal):
            yield _holder(self._folder)

    def sweep(self, now: Instant) -> None:
        try:
            names = [*self._cluster.get(f"/{self._options.prefix}-*/_alias")]
        except Missing:
            return
        except ClusterAway as error:
            log.warning("the sweep waits for the index", reason=str(error))
            return
        for name in names:
            try:
                self._sweep(name, now)
            except (Missing, Foreign):
                continue
            except Refused as error:
                log.warning("an index cannot be swept now", index=name, reason=str(error))
            except ClusterAway as error:
                log.warning("the sweep waits for the index", reason=str(error))
                return

    def _sweep(self, name: str, now: Instant) -> None:
        number = name.removeprefix(f"{self._options.prefix}-").partition("-")[0]
        if not number.isdecimal():
            return
        site = Site(self._cluster, self._options, int(number), self._owner(), self._clock)
        site.check_owner(name)
        if name == _current(site):
            sweep(self._cluster, name, now)
        elif now - site.last_used(name) > _ABANDONED:
            self._cluster.ask("DELETE", f"/{name}")


class ClusterIndex:
    """One repository's generations (a RepositoryIndex)."""

    def __init__(
        self, site: Site, folder: Path, language: str, others: Collection[str], stop_words: Collection[str]
    ) -> None:
        self._site, self._folder = site, folder
        self._language, self._others, self._stop_words = language, others, stop_words

    def reader(self) -> Index:
        return OpenSearchIndex(self._site, self._stop_words)

    def current(self) -> str | None:
        index = _current(self._site)
        return None if index is None else self._site.generation(index)

    def writer(self, generation: str) -> IndexWriter:
        others = Analyser(self._language, others=self._others).others
        if others:
            languages.check_detector()
        rules = compounds.rules((self._language, *others))
        wanted = About(self._site.owner, self._site.repository, fields.FORMAT, self._language, others, rules)
        return OpenSearchWriter(self._site, generation, wanted)

    @contextmanager
    def rebuilding(self) -> Iterator[str]:
        with _alone(self._folder / "rebuild.lock", "The index is being rebuilt already."):
            yield _holder(self._folder.parent)

    def begin(self) -> str:
        numbers = [int(name) for name in map(self._site.generation, self._names()) if name.isdecimal()]
        return str(max(numbers, default=0) + 1)

    def switch(self, generation: str) -> None:
        index, alias = self._site.index_of(generation), self._site.alias
        actions = [{"add": {"index": index, "alias": alias}}]
        former = self.current()
        with as_refusals("the generation could not become current"):
            if former is not None and former != generation:
                actions.insert(0, {"remove": {"index": self._site.index_of(former), "alias": alias}})
                self._site.note_former(former)
            self._site.cluster.post("/_aliases", {"actions": actions})

    def remove(self) -> None:
        with as_refusals("the indexes could not be removed"):
            for name in self._names():
                with suppress(Missing, Foreign):
                    self._site.check_owner(name)
                    self._site.cluster.ask("DELETE", f"/{name}")

    def _names(self) -> list[str]:
        try:
            return [*self._site.cluster.get(f"/{self._site.alias}-*/_alias")]
        except Missing:
            return []


def _current(site: Site) -> str | None:
    """Raises Foreign if the alias is no alias of one of our indexes."""
    try:
        names = [*site.cluster.get(f"/_alias/{site.alias}")]
    except Missing:
        return None
    if len(names) != 1 or not site.generation(names[0]).isdecimal():
        raise Foreign(f"The name {site.alias!r} stands for other indexes than ours.")
    return str(names[0])


@contextmanager
def _alone(lock: Path, refusal: str) -> Iterator[None]:
    lock.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with ExitStack() as stack:
        try:
            stack.enter_context(locks.hold(lock, wait=False))
        except locks.Held as error:
            raise InUse(refusal) from error
        yield


def _holder(folder: Path) -> str:
    return f"{socket.gethostname()}:{folder.absolute()}"

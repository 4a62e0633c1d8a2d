"""A search is one value: what is asked, by whom, and of which snapshots."""

from typing import Any, Literal, Self, TypeAlias

import msgspec
from sqlalchemy.engine import Connection

from muniment.ground.clock import Instant
from muniment.repository.options import RepositoryOptions
from muniment.repository.search.answering.cache import SearchCache
from muniment.repository.search.aql.rewriting.narrowing import Narrowing
from muniment.repository.search.aql.spelling.facets import FacetLimits
from muniment.repository.search.aql.tree import Query
from muniment.repository.search.index.contract import Snapshot
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.permissions.principals import Principals
from muniment.repository.store.repositories import Repository

WordsNeeded: TypeAlias = Literal["all", "any", "auto"]
"""How many of the words an object needs. ``auto`` is ``any`` if those with all words do not fill a page; with sorts,
``all``.
"""


class SearchQuestion(msgspec.Struct, frozen=True):
    """A query as a caller wrote it, and the wanted page.

    The first page begins after ``start`` hits. With ``collapse``, ``paging``, but not ``results``, leaves out copies.
    ``meaning`` finds objects near in meaning; None does so if ``words`` is ``any``, and no search with sorts does. With
    ``typed``, hits with the words in their sequence come first. ``words_held`` says that the caller may see an object
    with all words, and ``full_or_none`` that nobody will see a page which is not full.
    """

    query: Query = Query()
    page: int = 1
    items_per_page: int = 1
    include_total: bool = False
    narrowings: tuple[Narrowing, ...] = ()
    facet_limits: FacetLimits = FacetLimits()
    bare: bool = False
    start: int = 0
    words: WordsNeeded = "all"
    marks: bool = False
    collapse: bool = False
    meaning: bool | None = None
    locale: str = ""
    typed: bool = False
    words_held: bool = False
    full_or_none: bool = False


class Inquiry(msgspec.Struct, frozen=True):
    """A question, who asks it, and two snapshots that answer it. ``cx`` began to read after the index's ``snapshot``
    was taken.

    Relative dates count from ``now``.
    """

    cx: Connection
    snapshot: Snapshot
    repository: Repository
    principals: Principals
    now: Instant
    options: RepositoryOptions = RepositoryOptions()
    memory: SearchCache = msgspec.field(default_factory=SearchCache)
    question: SearchQuestion = SearchQuestion()

    def asking(self, question: SearchQuestion) -> Self:
        return msgspec.structs.replace(self, question=question)

    def changed(self, **changes: Any) -> Self:
        return self.asking(msgspec.structs.replace(self.question, **changes))

    def view(self) -> RepositoryView:
        return RepositoryView.read(self.cx, self.repository, self.principals)

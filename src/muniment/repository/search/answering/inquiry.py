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
"""How many of the question's words an object needs: all of them, or any one.

``auto`` means ``any`` if the objects that have all words do not fill a page. In a search with sorts, ``auto`` means
``all``.
"""


class SearchQuestion(msgspec.Struct, frozen=True):
    """A caller's question: a query as they wrote it, and the page of hits that they want.

    The first page begins after the first ``start`` hits. With ``collapse``, ``paging`` leaves out copies of hits
    (``copies``); ``results`` does not. ``meaning`` says whether objects near in meaning are found, too. With None, such
    objects are found only if ``words`` is ``any``. A search with sorts never finds them. With ``typed``, hits that hold
    the words as they follow each other in the question come first.
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


class Inquiry(msgspec.Struct, frozen=True):
    """A question, who asks it, and the two snapshots that answer it.

    ``cx`` must be a read that began after the ``snapshot`` of the index was taken. Relative dates count from ``now``.
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

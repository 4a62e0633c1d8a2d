"""Reading one object: its properties, its text with the words that were searched, and its content to download."""

from collections.abc import Mapping, Sequence

import msgspec
from sqlalchemy.engine import Connection
from starlette.requests import Request
from starlette.responses import Response

from muniment.ground.refusals import Malformed
from muniment.repository.api.context import Caller, RepositoryContext
from muniment.repository.api.endpoints.contents import contents
from muniment.repository.api.shapes import representations
from muniment.repository.options import RepositoryOptions
from muniment.repository.page import folders, frame, marking, properties, searching
from muniment.repository.page.asking import questions, sessions
from muniment.repository.page.asking.questions import PageQuestion
from muniment.repository.page.folders import FolderList
from muniment.repository.page.marking import Piece
from muniment.repository.page.properties import ShownProperty
from muniment.repository.refusals import IndexBehind, IndexUnavailable, UnknownSavedSearch
from muniment.repository.search.answering.inquiry import Inquiry
from muniment.repository.search.answering.related import similar
from muniment.repository.search.aql.tree import ExpressionSet, Property
from muniment.repository.search.index.contract import Marker
from muniment.repository.store.extraction import queue
from muniment.repository.store.extraction.queue import IndexStatus
from muniment.repository.store.objects import inventory, objects
from muniment.repository.store.objects.listing.object_ids import holds_objects
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.table import StoredObject
from muniment.repository.store.permissions.principals import Permission, Principals
from muniment.repository.store.repositories import Repository
from muniment.web.requests import bodies

_PART = 40_000

_BEFORE_A_CUT = 500

_SIMILAR = 5

_LOOKED_THROUGH = 25
"""So many parts of a text are looked through for the first marked word."""

_STATES: Mapping[str, str] = {
    "waiting": "Its text has not been read yet. Load this page again in a moment.",
    "failed": "Its text could not be read.",
    "unsupported": "Nothing here reads the text of this format.",
    "no-text": "No text was found in it. (Is it a scan or a picture?)",
    "empty": "It has no content.",
}


class TextPart(msgspec.Struct, frozen=True):
    """``part`` counts from 1 to ``parts``."""

    pieces: list[Piece]
    part: int
    parts: int
    marks: int


class SimilarDocument(msgspec.Struct, frozen=True):
    """``heading`` is title or name."""

    id: str
    heading: str


class ShownObject(msgspec.Struct, frozen=True):
    """``why`` may say why there is no ``text``; ``contents`` is only a folder's."""

    user_id: str
    id: str
    heading: str
    contents: FolderList | None
    folder: tuple[str, str] | None
    properties: list[ShownProperty]
    size: int | None
    text: TextPart | None
    why: str


async def show(request: Request, context: RepositoryContext) -> Response:
    """Show an object with its properties and its text."""
    pairs = list(bodies.pairs(request.scope["query_string"], "The address"))
    asked, part = questions.read(pairs), _part(dict(pairs).get("part", ""))
    object_id = representations.identifier(request)
    session = await sessions.read(request, context)
    caller = await sessions.enter(request, context, session, asked.repository)
    marker = await _marker(caller, asked, object_id) if asked.asks else None
    shown = await caller.read_long(
        lambda cx, principals: _read(cx, caller.repository, principals, object_id, marker, part, context.options)
    )
    documents = await _similar(caller, object_id) if shown.text is not None else []
    values = await searching.around(request, context, session, caller, asked)
    values |= {"object": shown, "similar": documents, "user_id": shown.user_id}
    return frame.draw(request, "object.html", values)


async def download(request: Request, context: RepositoryContext) -> Response:
    """Download the content of an object, whole or one range of it."""
    _, _, caller = await sessions.begin(request, context)
    return await contents.download(request, context, caller)


async def _marker(caller: Caller, asked: PageQuestion, object_id: str) -> Marker | None:
    """Return None if the question does not find the object or is refused, or the index is unavailable or too far
    behind.
    """

    def question(inquiry: Inquiry) -> Marker | None:
        query = searching.question_query(inquiry.cx, inquiry.view(), inquiry.options, asked).query
        this = Property("r_object_id", "EQUAL", object_id)
        condition = this if query.condition is None else ExpressionSet("AND", (query.condition, this))
        alone = msgspec.structs.replace(query, condition=condition, sorts=())
        return searching.marker(inquiry, alone, asked.needed)

    try:
        return await caller.search(question)
    except (*searching.READABLE, UnknownSavedSearch, IndexBehind, IndexUnavailable):
        return None


async def _similar(caller: Caller, object_id: str) -> list[SimilarDocument]:
    def find(inquiry: Inquiry) -> list[SimilarDocument]:
        page = similar.find(inquiry.changed(items_per_page=_SIMILAR, bare=True), object_id)
        stored = inventory.rows(inquiry.cx, inquiry.repository.id, [hit.object_id for hit in page.hits])
        return [SimilarDocument(hit.object_id, _heading(stored[hit.object_id])) for hit in page.hits]

    try:
        return await caller.search(find)
    except (IndexBehind, IndexUnavailable):
        return []


def _heading(stored: StoredObject) -> str:
    return stored.title.strip() or stored.name


def _read(
    cx: Connection,
    repository: Repository,
    principals: Principals,
    object_id: str,
    marker: Marker | None,
    part: int,
    options: RepositoryOptions,
) -> ShownObject:
    stored, permission = objects.read(cx, repository, object_id, principals)
    view = RepositoryView.read(cx, repository, principals)
    folder_names = searching.folder_names(cx, view, {stored.folder_id} if stored.folder_id else set())
    text, why = None, ""
    if permission < Permission.READ and not holds_objects(stored.id):
        why = "You may see that this document is there, and not read it."
    elif found := queue.text_of(cx, [stored.id]).get(stored.id, ""):
        text = _text(found, marker, part)
    elif not holds_objects(stored.id):
        is_empty = stored.content is not None and not stored.content.size
        why = "Its content is empty." if is_empty else _why(queue.status(cx, stored.id))
    return ShownObject(
        user_id=principals.id,
        id=stored.id,
        heading=_heading(stored),
        contents=folders.contents(cx, view, stored.id, part, options) if holds_objects(stored.id) else None,
        folder=(stored.folder_id, folder_names[stored.folder_id])
        if stored.folder_id and stored.folder_id in folder_names
        else None,
        properties=properties.shown(cx, view, stored, options.names),
        size=stored.content.size if stored.content and permission >= Permission.READ else None,
        text=text,
        why=why,
    )


def _why(status: IndexStatus) -> str:
    sentence, is_said = _STATES[status.state], status in (queue.EMPTY, queue.TEXTLESS)
    return sentence if is_said or not status.reason else f"{sentence} {status.reason}"


def _text(text: str, marker: Marker | None, part: int) -> TextPart:
    """Part 0 means the first with a marked word, or 1 if the first ``_LOOKED_THROUGH`` have none."""
    cuts = _cuts(text)

    def marks_of(number: int) -> Sequence[tuple[int, int]]:
        return marker(text[cuts[number - 1] : cuts[number]]) if marker else ()

    if part == 0:
        first_parts = range(1, min(len(cuts), _LOOKED_THROUGH + 1))
        part = next((number for number in first_parts if marks_of(number)), 1)
    if part >= len(cuts):
        raise Malformed(f"The text has {len(cuts) - 1} parts.")
    marks = marks_of(part)
    pieces = marking.pieces(text[cuts[part - 1] : cuts[part]], marks)
    return TextPart(pieces, part, len(cuts) - 1, len(marks))


def _cuts(text: str) -> list[int]:
    """Only a very long word is cut in two."""
    cuts = [0]
    while cuts[-1] < len(text):
        end = min(cuts[-1] + _PART, len(text))
        if end < len(text):
            window = text[end - _BEFORE_A_CUT : end]
            blank = max(window.rfind("\n"), window.rfind(" "))
            end -= len(window) - 1 - blank if blank >= 0 else 0
        cuts.append(end)
    return cuts


def _part(text: str) -> int:
    if text in ("", "0"):
        return 0
    if not (text.isascii() and text.isdecimal() and len(text) < 7):
        raise Malformed("A part has a number from 1 on.")
    return int(text)

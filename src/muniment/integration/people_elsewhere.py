"""How does a repository ask a directory elsewhere whom its resource lets in? Both ends of one address of the
directory, ``resources/{resource}/people`` (decision 0113).
"""

import asyncio
import base64
import hmac
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import TimeoutError as TookTooLong
from typing import Annotated, Any, TypeAlias

import msgspec
from sqlalchemy.engine import Connection

from muniment.directory.entries import system
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import UnknownEntry
from muniment.ground.naming import is_storable
from muniment.ground.refusals import Malformed, Refusal
from muniment.integration import directory_people
from muniment.repository.refusals import (
    BadFilter,
    BadSort,
    DirectoryUnavailable,
    UnknownPerson,
    UnknownProperty,
    WrongValue,
)
from muniment.repository.store.filters.cursors import Place, Stretch
from muniment.repository.store.filters.tree import EVERYTHING, Selection
from muniment.repository.store.people import Kind, ListedPerson, MemberFilter, People, PeopleFilter, Person

MOST_ASKED = 200
"""So many people may one answer hold; a longer page takes several."""

_DEEPEST = 100
_LARGEST_NUMBER = 2**63 - 1
_FURTHER_SECONDS = 1.0
_CHECK = 16
_NO_PLACE = "This place is not one of this list."


class _Which(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    kind: Kind
    group_id: str = ""
    having: tuple[MemberFilter, ...] = ()
    selection: Selection = EVERYTHING

    def of(self, resource_id: str) -> PeopleFilter:
        return PeopleFilter(resource_id, self.kind, self.group_id or None, self.having)


class PartQuestion(_Which, frozen=True, omit_defaults=True, kw_only=True, tag="page"):
    """Which people are in this part of a list?"""

    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_ASKED)]
    offset: Annotated[int, msgspec.Meta(ge=0)] = 0
    after: Place | None = None

    def answer(self, cx: Connection, names: DirectoryNames, resource_id: str) -> "PeopleAnswer":
        after = None if self.after is None else self._read(cx, self.after)
        stretch = Stretch(after, self.offset, self.limit)
        listed = directory_people.page(cx, names, self.of(resource_id), stretch, self.selection)
        return PeopleAnswer(people=[ListedPerson(each.person, self._write(cx, each.place)) for each in listed])

    def _write(self, cx: Connection, place: Place) -> Place:
        """Write a place as one text with a check, so that only places of this order come back."""
        content = msgspec.json.encode(place)
        return (base64.b64encode(self._check(cx, content) + content).decode(),)

    def _read(self, cx: Connection, written: Place) -> Place:
        try:
            whole = base64.b64decode(str(written[0]), validate=True)
        except (ValueError, IndexError) as error:
            raise Malformed(_NO_PLACE) from error
        check, content = whole[:_CHECK], whole[_CHECK:]
        if not hmac.compare_digest(check, self._check(cx, content)):
            raise Malformed(_NO_PLACE)
        return tuple(msgspec.json.decode(content, type=list[Any]))

    def _check(self, cx: Connection, content: bytes) -> bytes:
        order = msgspec.json.encode(("people", self.kind, self.selection.sort))
        return hmac.digest(system.key(cx, "csrf"), order + b"\x00" + content, "sha256")[:_CHECK]


class CountQuestion(_Which, frozen=True, omit_defaults=True, kw_only=True, tag="count"):
    """How many people does a list have?"""

    def answer(self, cx: Connection, names: DirectoryNames, resource_id: str) -> "PeopleAnswer":
        return PeopleAnswer(count=directory_people.count(cx, names, self.of(resource_id), self.selection))


class FindQuestion(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, tag="find"):
    """Who is this user or group, which with a group must be in it directly?"""

    kind: Kind
    id: str
    group_id: str = ""

    def answer(self, cx: Connection, names: DirectoryNames, resource_id: str) -> "PeopleAnswer":
        return PeopleAnswer(
            person=directory_people.find_person(cx, names, resource_id, self.kind, self.id, self.group_id or None)
        )


class DescribeQuestion(msgspec.Struct, frozen=True, kw_only=True, tag="describe"):
    """What would tokeninfo say of this user?"""

    id: str

    def answer(self, cx: Connection, names: DirectoryNames, resource_id: str) -> "PeopleAnswer":
        return PeopleAnswer(described=msgspec.Raw(directory_people.describe(cx, names, resource_id, self.id)))


PeopleQuestion: TypeAlias = PartQuestion | CountQuestion | FindQuestion | DescribeQuestion


class PeopleAnswer(msgspec.Struct, omit_defaults=True, kw_only=True):
    """The answer to a question, or the kind of the refusal and its sentence."""

    people: list[ListedPerson] = []
    count: int = 0
    person: Person | None = None
    described: msgspec.Raw = msgspec.Raw(b"null")
    refused: str = ""
    sentence: str = ""


_REFUSALS: Mapping[str, type[Refusal]] = {
    kind.__name__: kind for kind in (UnknownPerson, UnknownProperty, WrongValue, BadSort, BadFilter)
}

_answers = msgspec.json.Decoder(PeopleAnswer)


def answer(cx: Connection, names: DirectoryNames, resource_id: str, question: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a resource that has shown its secret. Raises Malformed."""
    _check(question)
    try:
        asked: PeopleQuestion = msgspec.convert(question, PeopleQuestion)
    except msgspec.ValidationError as error:
        raise Malformed(f"The question cannot be read: {str(error)[:300].rstrip('.')}.") from error
    try:
        answered = asked.answer(cx, names, resource_id)
    except UnknownEntry as unknown:
        answered = PeopleAnswer(refused=UnknownPerson.__name__, sentence=unknown.sentence)
    except tuple(_REFUSALS.values()) as refusal:
        answered = PeopleAnswer(refused=type(refusal).__name__, sentence=refusal.sentence)
    written: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(answered))
    return written


class PeopleElsewhere(People):
    """Asks over HTTPS, in any thread but the event loop's; an answer takes ``seconds`` at most, and is not kept.

    Each method raises what ``ask`` raises, too: NotOfferedYet, DirectoryUnavailable, Overloaded.
    """

    def __init__(self, ask: Callable[[str, bytes], Awaitable[bytes]], seconds: float) -> None:
        self._ask_directory, self._seconds = ask, seconds
        self._loop = asyncio.get_running_loop()

    def page(self, which: PeopleFilter, stretch: Stretch, selection: Selection) -> list[ListedPerson]:
        listed = list[ListedPerson]()
        after, offset = stretch.after, stretch.offset
        while len(listed) < stretch.limit:
            limit = min(MOST_ASKED, stretch.limit - len(listed))
            question = PartQuestion(**_fields(which), selection=selection, limit=limit, offset=offset, after=after)
            part = self._ask(which.resource_id, question).people
            listed += part
            if len(part) < limit:
                break
            after, offset = part[-1].place, 0
        return listed

    def count(self, which: PeopleFilter, selection: Selection) -> int:
        return self._ask(which.resource_id, CountQuestion(**_fields(which), selection=selection)).count

    def find(self, resource_id: str, kind: Kind, person_id: str, group_id: str | None = None) -> Person:
        question = FindQuestion(kind=kind, id=person_id, group_id=group_id or "")
        person = self._ask(resource_id, question).person
        if person is None:
            raise _unreadable()
        return person

    def describe(self, resource_id: str, user_id: str) -> bytes:
        return bytes(self._ask(resource_id, DescribeQuestion(id=user_id)).described)

    def _ask(self, resource_id: str, question: PeopleQuestion) -> PeopleAnswer:
        asking = asyncio.wait_for(self._ask_directory(resource_id, msgspec.json.encode(question)), self._seconds)
        try:
            # The loop ends the wait, unless the server is being stopped.
            content = asyncio.run_coroutine_threadsafe(asking, self._loop).result(self._seconds + _FURTHER_SECONDS)
        except (TimeoutError, TookTooLong) as error:
            raise DirectoryUnavailable("The directory did not say in time whom the repository lets in.") from error
        try:
            answered = _answers.decode(content)
        except (ValueError, RecursionError) as error:
            raise _unreadable() from error
        if answered.refused:
            raise _REFUSALS.get(answered.refused, DirectoryUnavailable)(answered.sentence)
        return answered


def _unreadable() -> DirectoryUnavailable:
    return DirectoryUnavailable("The directory's answer about users and groups cannot be read.")


def _fields(which: PeopleFilter) -> dict[str, Any]:
    return {"kind": which.kind, "group_id": which.group_id or "", "having": which.having}


def _check(value: object, depth: int = 0) -> None:
    """Raise Malformed for what no filter of a repository holds, and some database cannot compare with."""
    if depth > _DEEPEST:
        raise Malformed("The question is nested too deeply.")
    match value:
        case str() if not is_storable(value):
            raise Malformed("The question holds a character that cannot be stored.")
        case int() | float() if not -_LARGEST_NUMBER <= value <= _LARGEST_NUMBER:
            raise Malformed("The question holds a number that is too large.")
        case dict():
            for each in value.values():
                _check(each, depth + 1)
        case list():
            for each in value:
                _check(each, depth + 1)

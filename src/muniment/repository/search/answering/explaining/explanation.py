"""Why is this object a hit of a search, or why not?

A caller who may not browse the object gets the same answer as for an unknown object. What the text says is told only to
callers who may read it. If the index lacks the object, or has missed a change that hides it, comparisons use the
database. Source: docs/aql.md, "Why this hit, and why not that object"; docs/decisions/0062.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
from sqlalchemy.engine import Connection

from muniment.repository.refusals import NotPermitted
from muniment.repository.search.analysis.text import normal
from muniment.repository.search.answering import results
from muniment.repository.search.answering.explaining.condition_parts import ConditionPart, Examiner, Outcome, outcome_of
from muniment.repository.search.answering.inquiry import Inquiry, SearchQuestion
from muniment.repository.search.answering.scope import locations, visibility
from muniment.repository.search.aql.spelling import facets
from muniment.repository.search.aql.tree import Value
from muniment.repository.search.index.contract import Examination, Leaf, LeafWeight
from muniment.repository.store.change_log.changes import Kind, Position
from muniment.repository.store.extraction import queue
from muniment.repository.store.objects import inventory, objects
from muniment.repository.store.objects.listing import object_acls
from muniment.repository.store.objects.table import StoredObject
from muniment.repository.store.permissions import acl_entries, acls
from muniment.repository.store.permissions.principals import OWNER, Permission, Principals

MOST_REASONS = 20

_TOGETHER = 0.01
"""A larger rest, beyond the weights of words and of nearness in meaning, is one more match (``TermMatch.together``). A
smaller one comes from rounding.
"""

_UNITS = 10_000
"""A feed shows scores with four decimals."""


class TermMatch(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A word or phrase that matches, and what it adds to the score.

    Where any word is enough, one match may be ``together``: what the score has beyond the weights of words and of
    nearness. All weights add up to the score as shown. ``found_in`` is set for words and phrases alone.
    """

    term: str
    weight: float
    by_meaning: bool = False
    together: bool = False
    found_in: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    properties: tuple[str, ...] = ()


class Reason(msgspec.Struct, frozen=True, omit_defaults=True):
    """The ``part`` of the explanation has this reason."""

    part: str
    message: str
    place: str = ""


class UserRight(msgspec.Struct, frozen=True):
    """``entries`` are those of the object's ACL that apply to the user."""

    outcome: Outcome
    permission: Permission
    acl_name: str
    entries: Mapping[str, Permission]
    owns: bool
    administrator: bool


class IndexState(msgspec.Struct, frozen=True):
    """Does the index hold the object, and has it missed no change that hides it? ``missed`` and ``reason`` are empty if
    the caller may not read the text.
    """

    outcome: Outcome
    missed: tuple[Kind, ...] = ()
    reason: str = ""


class Explanation(msgspec.Struct, frozen=True):
    """Why a search finds an object for a user, or not. ``text`` is None if the caller may not read it. Names of types
    are neutral.
    """

    stored: StoredObject
    user: str
    hit: bool
    score: float | None
    matches: tuple[TermMatch, ...]
    reasons: tuple[Reason, ...]
    type_name: str
    types: tuple[str, ...]
    of_type: Outcome
    condition: ConditionPart | None
    in_location: Outcome | None
    in_facets: Outcome | None
    right: UserRight
    index: IndexState
    text: queue.IndexStatus | None
    position: Position


def explain(
    inquiry: Inquiry,
    object_id: str,
    question: Callable[[], SearchQuestion],
    *,
    user: Callable[[], Principals] | None = None,
    reason_not_indexed: Callable[[Connection, str], str | None] = lambda _cx, _object_id: None,
) -> Explanation:
    """Call ``question`` and ``user`` only when the caller is known to see the object.

    ``reason_not_indexed`` returns why an object could not be indexed, or None. Raises NotPermitted if a caller who is
    no administrator asks for a user, UnknownObject, and what these functions and ``results.search`` raise.
    """
    asker = inquiry.principals
    if user is not None and not asker.administrator:
        raise NotPermitted("Only an administrator may ask what another user finds.")
    stored, own_permission = objects.read(inquiry.cx, inquiry.repository, object_id, asker)
    asked = msgspec.structs.replace(inquiry, principals=asker if user is None else user(), question=question())
    may_tell = own_permission >= Permission.READ
    return _Explainer(asked, asker, stored, reason_not_indexed, may_tell=may_tell).explanation()


class _Explainer:
    """Answers one question; with ``may_tell``, the caller may read the object's text."""

    def __init__(
        self,
        inquiry: Inquiry,
        asker: Principals,
        stored: StoredObject,
        reason_not_indexed: Callable[[Connection, str], str | None],
        *,
        may_tell: bool,
    ) -> None:
        self._inquiry = inquiry
        self._cx = inquiry.cx
        self._principals = inquiry.principals
        self._query = inquiry.question.query
        self._asker = asker
        self._stored = stored
        self._may_tell = may_tell
        self._reason_not_indexed = reason_not_indexed
        self._search = results.prepare(inquiry)
        self._examination = inquiry.snapshot.examine(self._search, stored.id)
        self._permission = acl_entries.permission(self._cx, stored.acl_id, stored.owner_key, self._principals)
        anywhere = msgspec.structs.replace(self._query, locations=())
        self._bound = results.bind_query(self._cx, inquiry.view(), anywhere, inquiry.now, inquiry.memory)

    def explanation(self) -> Explanation:
        examination, index = self._examination, self._index()
        is_hit = examination is not None and examination.score is not None and self._permission >= Permission.BROWSE
        current = examination if index.outcome == "met" else None
        examiner, condition = self._examined(current, may_read=self._permission >= Permission.READ)
        type_name = self._stored.type if current is None else current.document.type
        type_outcome = outcome_of(not self._bound.types or type_name in self._bound.types)
        score = round(examination.score or 0.0, 4) if is_hit and examination is not None else None
        answer = Explanation(
            stored=self._stored,
            user=self._principals.id,
            hit=is_hit,
            score=score,
            matches=() if score is None or examination is None else _matches(score, examiner, examination.by_meaning),
            reasons=(),
            type_name=type_name,
            types=self._query.types,
            of_type=type_outcome,
            condition=condition,
            in_location=self._in_location(examiner),
            in_facets=self._in_facets(examiner),
            right=self._right(),
            index=index,
            text=queue.status(self._cx, self._stored.id) if self._may_tell else None,
            position=self._inquiry.snapshot.position,
        )
        if is_hit:
            return answer
        with_text = None
        if self._may_tell and self._permission < Permission.READ and current is not None:
            _, with_text = self._examined(current, may_read=True)
        return msgspec.structs.replace(answer, reasons=self._reasons(answer, current, with_text))

    def _examined(self, current: Examination | None, *, may_read: bool) -> tuple[Examiner, ConditionPart | None]:
        if current is None:
            examiner = Examiner(self._values(), self._stored.acl_id, None, may_read=may_read)
        else:
            leaves: dict[Leaf, LeafWeight] = {each.leaf: each for each in current.leaves}
            examiner = Examiner(current.document.values, current.document.acl, leaves, may_read=may_read)
        if self._query.condition is None or self._bound.condition is None:
            return examiner, None
        return examiner, examiner.part(self._query.condition, self._bound.condition)

    def _values(self) -> Mapping[str, Sequence[Value]]:
        acl_name = acls.names(self._cx, [self._stored.acl_id])[self._stored.acl_id]
        catalogue = self._inquiry.view().catalogue
        values = inventory.values(self._stored, catalogue, acl_name, catalogue.unsearchable)
        return {**values, "r_index_status": [queue.status(self._cx, self._stored.id).state]}

    def _index(self) -> IndexState:
        visible, object_id = self._search.visible, self._stored.id
        left_out = object_id in visible.hidden or (object_id in visible.decided and object_id not in visible.browse)
        if left_out and self._permission >= Permission.BROWSE:
            missed_changes = visibility.missed(
                self._inquiry, self._search.query, facets.property_names(self._search.facets)
            )
            kinds = tuple(sorted(missed_changes.get(object_id, ()))) if self._may_tell else ()
            return IndexState("not-met", kinds)
        if self._examination is None:
            return IndexState(
                "not-met", reason=(self._reason_not_indexed(self._cx, object_id) or "") if self._may_tell else ""
            )
        return IndexState("met")

    def _in_location(self, examiner: Examiner) -> Outcome | None:
        if not self._query.locations:
            return None
        condition = locations.condition(self._cx, self._inquiry.view(), self._query.locations)
        return None if condition is None else examiner.compared(condition)

    def _in_facets(self, examiner: Examiner) -> Outcome | None:
        _, condition = results.narrowing(self._inquiry)
        return None if condition is None else examiner.compared(condition)

    def _right(self) -> UserRight:
        principals, stored = self._principals, self._stored
        owns = principals.is_(stored.owner_key)
        acl = acls.by_id(self._cx, stored.acl_id)
        applying = principals.accessors | ({OWNER} if owns else set())
        entries = {accessor: level for accessor, level in acl.entries.items() if accessor in applying}
        return UserRight(
            outcome_of(self._permission >= Permission.BROWSE),
            self._permission,
            object_acls.shown_name(self._cx, stored, self._asker),
            acl_entries.by_name(self._cx, {acl.id: entries})[acl.id],
            owns,
            principals.administrator,
        )

    def _reasons(
        self, answer: Explanation, current: Examination | None, with_text: ConditionPart | None
    ) -> tuple[Reason, ...]:
        who = "You" if self._asker is self._principals else "The user"
        reasons = list(self._standing_reasons(answer, who))
        condition = answer.condition
        if self._stored.former and not self._query.all_versions:
            reasons.append(
                Reason("version", "The object is a former version, and the query does not ask for former versions.")
            )
        if answer.of_type != "met":
            reasons.append(Reason("types", "The object has none of the types that the query names."))
        if condition is not None and condition.outcome == "not-met":
            reasons += [Reason("condition", message, place) for message, place in condition.failures()]
        if answer.in_location == "not-met":
            reasons.append(Reason("locations", "The object lies in none of the folders that the query names."))
        if answer.in_facets == "not-met":
            reasons.append(Reason("facets", "The object has none of the values to which the facets are narrowed."))
        if condition is not None and condition.outcome != "met":
            if with_text is not None and with_text.outcome == "met":
                reasons.append(Reason("right", f"{who} may not read the text, which holds what the metadata lacks."))
            else:
                reasons += self._text_reasons(condition, answer.text, current)
        return tuple(reasons[:MOST_REASONS])

    def _standing_reasons(self, answer: Explanation, who: str) -> Iterator[Reason]:
        if self._permission < Permission.BROWSE:
            level = self._permission.name.capitalize()
            yield Reason("right", f"{who} may not browse the object: its ACL gives them {level}.")
        if self._examination is None:
            why = f": {answer.index.reason}" if answer.index.reason else " yet."
            yield Reason("index", f"The index does not hold the object{why}")
        elif answer.index.outcome != "met":
            yield Reason("index", "The index has not followed the last changes of the object yet.")

    def _text_reasons(
        self, condition: ConditionPart, status: queue.IndexStatus | None, current: Examination | None
    ) -> Sequence[Reason]:
        if status is None or not condition.has_keywords():
            return ()
        if status.state not in ("done", "no-text", "empty"):
            return (Reason("text", f"The text of the object has not been extracted (state {status.state})."),)
        newest = queue.text_of(self._cx, [self._stored.id]).get(self._stored.id, "")
        if current is not None and normal(newest) != normal(current.document.text):
            return (Reason("text", "The index does not hold the newest text of the object yet."),)
        return ()


def shares(total: float, weights: Sequence[float]) -> list[float]:
    """Round the weights to four decimals, so that they add up to ``total`` exactly, if there are any."""
    if not weights:
        return []
    units = round(total * _UNITS)
    exact = [weight * _UNITS for weight in weights]
    parts = [int(weight) for weight in exact]
    by_rest = sorted(range(len(exact)), key=lambda at: parts[at] - exact[at])
    for step in range(units - sum(parts)):
        parts[by_rest[step % len(by_rest)]] += 1
    for step in range(sum(parts) - units):
        parts[by_rest[-1 - step % len(by_rest)]] -= 1
    return [each / _UNITS for each in parts]


def _matches(score: float, examiner: Examiner, by_meaning: float) -> tuple[TermMatch, ...]:
    contributions = examiner.contributions()
    exact = [weight for _, _, weight in contributions]
    rest = score - sum(exact) - by_meaning
    extra_weight = [rest] if rest > _TOGETHER else []
    meaning_weight = [by_meaning] if by_meaning else []
    weights = shares(score, exact + meaning_weight + extra_weight)
    words = tuple(
        TermMatch(
            leaf.term, weight, found_in=fields, properties=(leaf.properties or ()) if "metadata" in fields else ()
        )
        for (leaf, fields, _), weight in zip(contributions, weights[: len(contributions)], strict=True)
    )
    if meaning_weight:
        words = (*words, TermMatch("by meaning", weights[len(exact)], by_meaning=True))
    if not extra_weight:
        return words
    terms = dict.fromkeys(leaf.term for leaf, *_ in contributions)
    return *words, TermMatch(" ".join(terms), weights[-1], together=True)

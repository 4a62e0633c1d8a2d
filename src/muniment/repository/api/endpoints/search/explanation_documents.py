"""What an explanation looks like: why an object is a hit of a search, or why it is none.

Source: docs/aql.md, "Why this hit, and why not that object".
"""

import msgspec

from muniment.repository.api.wire.documents import AclEntryDocument, LinkDocument


class TermMatchDocument(msgspec.Struct, rename="kebab"):
    """A word or phrase that matches in the text or the metadata, and what it adds to the score.

    With ``by-meaning``, ``weight`` is what nearness in meaning adds. With ``together``, it is what the score has beyond
    the weights of the words and of this nearness.
    """

    term: str
    weight: float
    together: bool | msgspec.UnsetType = msgspec.UNSET
    by_meaning: bool | msgspec.UnsetType = msgspec.UNSET
    found_in: list[str] | msgspec.UnsetType = msgspec.UNSET
    properties: list[str] | msgspec.UnsetType = msgspec.UNSET


class ReasonDocument(msgspec.Struct):
    """Why an object is no hit: the part of the explanation with the reason, a sentence, and the place in the query."""

    part: str
    message: str
    place: str | msgspec.UnsetType = msgspec.UNSET


class ConditionPartDocument(msgspec.Struct, rename="kebab"):
    """A part of the query's condition. ``outcome`` is `met`, `not-met` or `unknown`."""

    kind: str
    outcome: str
    operator: str | msgspec.UnsetType = msgspec.UNSET
    name: str | msgspec.UnsetType = msgspec.UNSET
    values: list[str] | msgspec.UnsetType = msgspec.UNSET
    place: str | msgspec.UnsetType = msgspec.UNSET
    looked_in: list[str] | msgspec.UnsetType = msgspec.UNSET
    found_in: list[str] | msgspec.UnsetType = msgspec.UNSET
    parts: list["ConditionPartDocument"] | msgspec.UnsetType = msgspec.UNSET


class TypesOutcome(msgspec.Struct, rename="kebab"):
    """Whether the object's type is one of the query's types, or below one. If the query names no types, it is `met`."""

    outcome: str
    object_type: str
    types: list[str]


class PlainOutcome(msgspec.Struct):
    """Whether a part of the query is met."""

    outcome: str


class RightOutcome(msgspec.Struct, rename="kebab"):
    """Whether the user may browse the object, and by which entries of its ACL."""

    outcome: str
    basic_permission: str
    acl_name: str
    owner: bool
    administrator: bool
    permitted: list[AclEntryDocument]


class IndexOutcome(msgspec.Struct):
    """Whether the index holds the object as it is now, and which kinds of change it has missed."""

    outcome: str
    missed: list[str]
    reason: str


class TextState(msgspec.Struct):
    """The state of the object's text, and the reason if there is no text."""

    state: str
    reason: str


class ExplanationDocument(msgspec.Struct, rename="kebab"):
    """Why a search by a certain user finds an object, or why it does not."""

    object_id: str
    user: str
    hit: bool
    matches: list[TermMatchDocument]
    reasons: list[ReasonDocument]
    types: TypesOutcome
    right: RightOutcome
    index: IndexOutcome
    links: list[LinkDocument]
    score: float | msgspec.UnsetType = msgspec.UNSET
    condition: ConditionPartDocument | msgspec.UnsetType = msgspec.UNSET
    locations: PlainOutcome | msgspec.UnsetType = msgspec.UNSET
    facets: PlainOutcome | msgspec.UnsetType = msgspec.UNSET
    text: TextState | msgspec.UnsetType = msgspec.UNSET

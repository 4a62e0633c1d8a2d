"""Which fields does an index have, whichever its engine, and what does a document put into them?

Who may read an object searches ``anywhere``: title and name, ``HEADING_WEIGHT`` times, then other metadata, then the
text; who may only browse it, ``metadata``, the same without the text. A gap keeps phrases from reaching from one value
to the next.

Variants of words (``variants``) are further stems behind all others, so completions and quoted phrases never see them.
"""

import itertools
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, assert_never

import msgspec

from muniment.ground.clock import Instant
from muniment.repository.folding import COMPARED, fold
from muniment.repository.refusals import BadQuery
from muniment.repository.search.analysis.analysis import Analyser
from muniment.repository.search.analysis.text import normal
from muniment.repository.search.aql.conditions import Between
from muniment.repository.search.aql.patterns import JOINED
from muniment.repository.search.aql.tree import Value
from muniment.repository.search.aql.values import Kind, keyword_values
from muniment.repository.search.index.document import Document

KEY, TYPE, ACL, OWNER = "key", "type", "acl", "owner"
NUMBER, MODIFIED, EMBEDDING = "number", "modified", "embedding"

POSITION = "\0position"
"""The key of a document that holds the position; no search finds it."""

FORMER, IS_FORMER = "former", "1"
"""Other objects lack the field."""

HEADINGS = ("title", "object_name")

HEADING_WEIGHT = 3
"""A heading is written so often: it outranks one match in a text, unless that has fewer than about a third of the
words.
"""


class WordFields(NamedTuple):
    """Fields of stems, and of words as they are."""

    stems: str
    words: str


ANYWHERE = WordFields("anywhere", "anywhere_exact")
METADATA = WordFields("metadata", "metadata_exact")
EXACT = frozenset({ANYWHERE.words, METADATA.words})

LEAST, MOST = -(2**63), 2**63 - 1

MOST_VALUES = 65_000
"""A property with more values is not counted by value."""

MOST_RANGES = 2000
"""So many are counted by one question."""

SORTED = 255
"""So many characters of a text count in an order; engines compare all that they hold, so ``by_values`` refuses longer
texts.
"""

CUT = frozenset({"r_creation_date"})
"""The index holds these only to the millisecond, so it has no order by them."""

_PROPERTY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Words(NamedTuple):
    """Texts for a pair of fields, to be split into words, with a gap between two of them."""

    stems: list[str]
    words: list[str]


class Source(msgspec.Struct, frozen=True, omit_defaults=True):
    """A document without its text. ``language`` is a further one of the index."""

    key: str
    type: str
    acl: int
    owner: str
    values: dict[str, tuple[Value, ...]]
    ids: tuple[str, ...] = ()
    seq: int = 0
    modified: Instant = 0
    embedding: int = 0
    language: str = ""
    former: bool = False


class FoundBy(msgspec.Struct, frozen=True):
    """Copies of unstored fields by which searches find a document."""

    key: str
    type: str
    acl: int
    owner: str
    former: bool = False


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Source)
_found_by_decoder = msgspec.json.Decoder(FoundBy)


def words_of(document: Document, analyser: Analyser, language: str) -> tuple[Words, Words]:
    """Return the words of the metadata, and those anywhere; ``language`` is the whole document's."""
    written = list(_weighted_texts(document))
    form_of = {each: analyser.form(each) for each in dict.fromkeys(written)}
    metadata = [form_of[each] for each in written]
    joined_of = {form: analyser.joined(form) for form in dict.fromkeys(metadata)}
    metadata_language = analyser.language_of_metadata(document.values)
    spellings_of = _spellings_of(joined_of, analyser, metadata_language)
    in_metadata = _words(metadata, spellings_of, joined_of)
    if language != metadata_language:
        spellings_of = _spellings_of(joined_of, analyser, language)
    text = analyser.form(document.text)
    joined_of[text] = analyser.joined(text)
    spellings_of[text] = analyser.spellings(text, joined_of[text], language)
    return in_metadata, _words([*metadata, text], spellings_of, joined_of)


def _spellings_of(
    joined_of: Mapping[str, Sequence[str]], analyser: Analyser, language: str
) -> dict[str, Sequence[str]]:
    return {form: analyser.spellings(form, joined, language) for form, joined in joined_of.items()}


def _words(
    texts: Sequence[str], spellings_of: Mapping[str, Sequence[str]], joined_of: Mapping[str, Sequence[str]]
) -> Words:
    """Exact words are of the texts, then joined words with their mark; stems of first spellings, then of variants."""
    spellings, joined = [spellings_of[text] for text in texts], [joined_of[text] for text in texts]
    stems = [stemmed for stemmed, *_ in spellings]
    stems += itertools.chain.from_iterable(variants for _, *variants in spellings)
    return Words(stems, [*texts, *(word + JOINED for word in itertools.chain.from_iterable(joined))])


def _weighted_texts(document: Document) -> Iterator[str]:
    headings, others = dict[str, None](), []
    for name, value in keyword_values(document.values, document.ids):
        if name in HEADINGS:
            headings[normal(value)] = None
        else:
            others.append(value)
    for heading in headings:
        yield from itertools.repeat(heading, HEADING_WEIGHT)
    yield from others


def source(document: Document, language: str = "") -> bytes:
    stored = msgspec.structs.asdict(document)
    del stored["text"]
    return _encoder.encode(Source(**stored, language=language))


def read_source(stored: bytes) -> Source:
    return _decoder.decode(stored)


def read_found_by(stored: bytes) -> FoundBy:
    return _found_by_decoder.decode(stored)


def as_document(source: Source, text: str) -> Document:
    stored = msgspec.structs.asdict(source)
    del stored["language"]
    return Document(**stored, text=text)


def as_written(value: str) -> str:
    """Take the first ``COMPARED`` characters, unfolded."""
    return value[:COMPARED]


def sortable(value: float) -> int:
    """Keep the order of doubles in integers."""
    bits: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return bits if bits >= 0 else -(bits & MOST)


def double(encoded: int) -> float:
    value: float = struct.unpack("<d", struct.pack("<q", abs(encoded)))[0]
    return value if encoded >= 0 else -value


def whole_number(value: int) -> int:
    """Return the nearest that the index can hold."""
    return min(max(value, LEAST), MOST)


def as_indexed(value: Value) -> list[tuple[str, str | int]]:
    """Return what an index holds, by kind: ``s`` and ``v`` for strings as compared and as written, ``i`` for whole
    numbers and instants, ``f`` for doubles, as integers in the same order, ``b`` for truth values as 0 and 1.
    """
    if isinstance(value, str):
        return [("s", fold(value)), ("v", as_written(value))]
    if isinstance(value, bool):
        return [("b", int(value))]
    return [("i", whole_number(value)) if isinstance(value, int) else ("f", sortable(value))]


def as_value(kind: str, held: str | int) -> Value:
    if isinstance(held, str):
        return held
    if kind == "b":
        return bool(held)
    return double(held) if kind == "f" else held


def check_property(name: str) -> None:
    """Raises BadQuery for a name that no property can have."""
    if not _PROPERTY.fullmatch(name):
        raise BadQuery(f"There is no property {name[:100]!r}.")


def numbers_between(range_: Between) -> tuple[str, int, int]:
    """Return the kind of ``as_indexed``, and the least and the greatest number, which may be less, of a range of
    numbers.
    """
    low, high = range_.low, range_.high
    kind = "f" if isinstance(low, float) or isinstance(high, float) else "i"
    least = LEAST if low is None else max(_as_integer(low) + range_.low_open, LEAST)
    most = MOST if high is None else min(_as_integer(high) - range_.high_open, MOST)
    return kind, least, most


def _as_integer(value: Value) -> int:
    return sortable(value) if isinstance(value, float) else int(value)


def index_kind(kind: Kind, *, folded: bool) -> str:
    """Name the kind of ``as_indexed`` for a property; texts have a folded and a written one."""
    match kind:
        case "string" | "id":
            return "s" if folded else "v"
        case "boolean":
            return "b"
        case "double":
            return "f"
        case "integer" | "date":
            return "i"
        case _:
            assert_never(kind)

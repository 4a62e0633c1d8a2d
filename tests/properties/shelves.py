"""Small random worlds for an index: objects, callers, query trees."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from muniment.ground.clock import Instant
from muniment.ground.naming import fold_name
from muniment.repository.folding import fold
from muniment.repository.refusals import BadQuery
from muniment.repository.search.analysis.analysis import Analyser
from muniment.repository.search.aql import patterns
from muniment.repository.search.aql.conditions import (
    Between,
    BoundQuery,
    Carries,
    Condition,
    ConditionSet,
    HasValue,
    Like,
    OneOf,
    Unless,
)
from muniment.repository.search.aql.patterns import Gap, Pattern
from muniment.repository.search.aql.tree import (
    AnyWord,
    Both,
    Either,
    Fulltext,
    Keywords,
    Phrase,
    Term,
    Value,
    Wild,
    Without,
)
from muniment.repository.search.index.contract import Answer, Search, Snapshot, Visible
from muniment.repository.search.index.document import Document, document
from muniment.repository.search.index.questions import costs
from muniment.repository.search.index.tantivy.engine import TantivyIndex, TantivyWriter
from muniment.repository.store.change_log.changes import Position
from tests.properties.oracle import evaluate

ANALYSER = Analyser("English")

WORDS = ["pump", "pumps", "pumping", "valve", "valves", "Ventil", "École", "ecole", "happy", "happiness", "Straße"]
WORDS += ["strasse", "o'neil", "foo-bar", "café", "12:30", "x", "日本", "dying", "die", "ﬁle", "file", "Ωmega"]
WORDS += ["本日2024年"]
WORDS += [
    "FooBar",
    "bar",
    "b2b",
    "12,300",
    "12300",
    "München",
    "muenchen",
    "IndexBAR-ecole",
    "bar日本人",
    "한국어",
    "한국",
    "어",
    "foobar",
    "1230-5678",
    "12305678",
    "b-2-b",
    "Королёв",
    "королев",
    "क़लम",
    "कलम",
    "🎉",
]
STRINGS = [
    "",
    "a",
    "ab",
    "abc",
    "Abc",
    "abd",
    "b",
    "B",
    "z",
    "é",
    "É",
    "日",
    "日本",
    "a\\b.*",
    "2024-01-01T00:00:00Z",
    "~",
]
OWNERS = ["marta@staff", "Jon@staff", "eve@guests"]
TYPES = ["document", "folder", "report"]
INTEGERS = [-(2**63), -1000, -1, 0, 1, 5, 999, 1000, 2**53 + 1, 2**63 - 1]
DOUBLES = [-1e300, -1.5, -0.0, 0.0, 0.1, 1.5, 2.0, 3.25, 1e300]


PLACES = ["0900000100000001", "0900000100000002"]
IDS = frozenset({"place", "another_place"})
"""Properties of kind id; objects have the first one."""

SLOW = settings(
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
)
"""An example commits to an index, which takes tens of milliseconds."""


class Row(msgspec.Struct, frozen=True):
    """An object, as ``document`` reads it, and what it says."""

    id: str
    seq: int
    modified: Instant
    type: str
    owner: str
    acl_id: int
    values: dict[str, list[Value]]
    text: str
    former: bool = False

    @property
    def owner_key(self) -> str:
        """What the owner's objects are stored under."""
        return fold_name(self.owner)

    def document(self) -> Document:
        return document(self, self.values, self.text, IDS)  # type: ignore[arg-type]


def texts(longest: int = 8) -> st.SearchStrategy[str]:
    words = st.lists(st.sampled_from(WORDS), max_size=longest)
    return st.builds(lambda several, gap: gap.join(several), words, st.sampled_from([" ", "\n  ", ", ", " - "]))


def some(values: Sequence[Value], most: int = 3) -> st.SearchStrategy[list[Value]]:
    return st.lists(st.sampled_from(values), max_size=most)


@st.composite
def rows(draw: st.DrawFn, least: int = 1) -> list[Row]:
    made = []
    for at in range(draw(st.integers(least, 7))):
        owner = draw(st.sampled_from(OWNERS))
        values: dict[str, list[Value]] = {
            "object_name": [draw(texts(3))],
            "title": [*draw(st.lists(texts(3), max_size=1))],
            "authors": [*draw(st.lists(texts(2), max_size=2))],
            "owner_name": [owner],
            "colour": draw(some(STRINGS)),
            "size": draw(some(INTEGERS)),
            "weight": draw(some(DOUBLES)),
            "draft": draw(some([True, False], 1)),
            "place": [*draw(some(PLACES, 1))],
        }
        text = draw(texts(12))
        object_id, seq, modified = f"{0x0900000100000000 + at:016x}", 5 * at % 7 + 1, draw(st.integers(0, 2))
        former = draw(st.sampled_from([False, False, True]))
        made.append(Row(object_id, seq, modified, draw(st.sampled_from(TYPES)), owner, at % 4, values, text, former))
    return made


def wild_words() -> st.SearchStrategy[str]:
    """Words of which a piece is a wildcard."""
    cuts = st.tuples(st.integers(0, 6), st.integers(0, 6)).map(sorted)
    return st.builds(
        lambda word, gap, cut: word[: cut[0]] + gap + word[cut[1] :],
        st.sampled_from(WORDS),
        st.sampled_from(["*", "?", "**", "?*"]),
        cuts,
    )


def terms() -> st.SearchStrategy[Keywords]:
    beginnings = st.builds(lambda word, n: Wild(word[:n] + "*"), st.sampled_from(WORDS), st.integers(1, 5))
    return st.one_of(
        st.builds(Term, st.sampled_from([*WORDS, "nothing", "!", PLACES[0]])),
        st.builds(Term, st.sampled_from([*WORDS, "pmup", "valfe", "stress", "pum"]), st.just(value=True)),
        beginnings,
        st.builds(Wild, wild_words()),
        st.builds(
            lambda first, sign, last, n: Wild(f"{first}{sign}{last[:n]}*"),
            st.sampled_from(WORDS),
            st.sampled_from(["-", "_", ":"]),
            st.sampled_from([*WORDS, PLACES[1]]),
            st.integers(1, 5),
        ),
        st.builds(lambda first, last: Wild(f"{first}-{last}"), st.sampled_from(WORDS), wild_words()),
        st.builds(Phrase, texts(2)),
    )


def questions() -> st.SearchStrategy[Keywords]:
    """Keywords of several words, relaxed."""
    words = st.builds(Term, st.sampled_from([*WORDS, "of", "The", "what", "nothing"]), st.booleans())
    several = st.lists(words, min_size=2, max_size=4, unique=True).map(tuple)
    return several.map(lambda some: AnyWord(Both(some, loose=True), some))


def keywords() -> st.SearchStrategy[Keywords]:
    return st.recursive(
        st.one_of(terms(), terms(), questions()),
        lambda inner: st.one_of(
            st.builds(Both, st.lists(inner, min_size=1, max_size=3).map(tuple)),
            st.builds(Either, st.lists(inner, min_size=1, max_size=3).map(tuple)),
            st.builds(Without, inner),
        ),
        max_leaves=4,
    )


def comparisons() -> st.SearchStrategy[Condition]:
    def between(name: str, values: Sequence[Value]) -> st.SearchStrategy[Condition]:
        bound = st.one_of(st.none(), st.sampled_from(values))
        ranges = st.builds(Between, st.just(name), bound, bound, st.booleans(), st.booleans())
        return ranges.filter(lambda each: each.low is not None or each.high is not None)

    def among(name: str, values: Sequence[Value]) -> st.SearchStrategy[Condition]:
        wanted = st.lists(st.sampled_from(values), min_size=1, max_size=3).map(tuple)
        return st.builds(lambda several: OneOf(name, several), wanted)

    return st.one_of(
        st.builds(lambda value: Like("colour", (Pattern((fold(value), Gap.RUN)),)), st.sampled_from(STRINGS)),
        st.builds(lambda value: Like("owner_name", (Pattern((value, Gap.RUN)),)), st.sampled_from(["mar", "jon", "x"])),
        st.builds(lambda value: Like("colour", (patterns.read(fold(value)),)), wild_values()),
        st.builds(lambda value: Like("object_name", (patterns.read(f"*{fold(value)}*"),)), wild_words()),
        st.builds(
            lambda value: Like("colour", patterns.similar(value)), st.sampled_from(["2024-01-01t00:00:00", "abcd"])
        ),
        st.builds(lambda some: Carries(tuple(sorted(some))), st.frozensets(st.integers(0, 4), max_size=2)),
        st.builds(HasValue, st.sampled_from(["colour", "size", "weight", "draft", "place", "nowhere"])),
        *(between(name, values) for name, values in (("colour", STRINGS), ("size", INTEGERS), ("weight", DOUBLES))),
        *(among(name, values) for name, values in (("colour", STRINGS), ("size", INTEGERS), ("weight", DOUBLES))),
        among("draft", [True, False]),
        among("place", PLACES),
    )


def wild_values() -> st.SearchStrategy[str]:
    """Values of which a piece is a wildcard."""
    cuts = st.tuples(st.integers(0, 4), st.integers(0, 4)).map(sorted)
    return st.builds(
        lambda value, gap, cut: value[: cut[0]] + gap + value[cut[1] :],
        st.sampled_from(STRINGS),
        st.sampled_from(["*", "?", "??"]),
        cuts,
    )


def is_affordable(condition: Condition) -> bool:
    """Whether an engine may be asked: wildcards that stand for too many words are refused."""
    try:
        costs.check(condition, ANALYSER, documents=1)
    except BadQuery:
        return False
    return True


def conditions() -> st.SearchStrategy[Condition]:
    made = st.recursive(
        st.one_of(st.builds(Fulltext, st.one_of(st.none(), keywords())), comparisons()),
        lambda inner: st.one_of(
            st.builds(ConditionSet, st.sampled_from(["AND", "OR"]), st.lists(inner, min_size=1, max_size=3).map(tuple)),
            st.builds(Unless, inner),
        ),
        max_leaves=4,
    )
    return made.filter(is_affordable)


def queries() -> st.SearchStrategy[BoundQuery]:
    types = st.lists(st.sampled_from(TYPES), max_size=2).map(tuple)
    return st.builds(BoundQuery, types, st.one_of(st.none(), conditions()))


@st.composite
def callers(draw: st.DrawFn) -> Visible:
    if draw(st.integers(0, 5)) == 0:
        return Visible(everything=True, hidden=frozenset(draw(keys())), all_versions=draw(st.booleans()))
    browse = draw(st.frozensets(st.integers(0, 3)))
    read = draw(st.frozensets(st.sampled_from(sorted(browse)))) if browse else frozenset()
    decided = draw(keys())
    seen = draw(st.frozensets(st.sampled_from(sorted(decided)))) if decided else frozenset()
    open_to = draw(st.frozensets(st.sampled_from(sorted(seen)))) if seen else frozenset()
    return Visible(
        owner=draw(st.sampled_from(["", "marta@staff", "eve@guests"])),
        browse_acls=browse,
        read_acls=read,
        hidden=draw(keys()),
        decided=decided,
        browse=seen,
        read=open_to,
        all_versions=draw(st.booleans()),
    )


@st.composite
def readers(draw: st.DrawFn) -> Visible:
    """Callers who may browse most, and read some of it."""
    everyone = frozenset(range(4))
    read = frozenset({draw(st.integers(0, 3)), draw(st.integers(0, 3))})
    return Visible(owner=draw(st.sampled_from(["", "eve@guests"])), browse_acls=everyone, read_acls=read)


def keys() -> st.SearchStrategy[frozenset[str]]:
    return st.frozensets(st.integers(0, 6).map(lambda at: f"{0x0900000100000000 + at:016x}"), max_size=2)


def may(visible: Visible, row: Row) -> tuple[bool, bool]:
    """Whether the caller may browse and read the object."""
    if row.id in visible.hidden or (row.former and not visible.all_versions):
        return False, False
    if visible.everything:
        return True, True
    if row.id in visible.decided:
        return row.id in visible.browse, row.id in visible.read
    if row.owner.lower() == visible.owner.lower():
        return True, True
    return row.acl_id in visible.browse_acls, row.acl_id in visible.read_acls


def found_by_oracle(
    query: BoundQuery, visible: Visible, all_rows: Iterable[Row], analyser: Analyser = ANALYSER
) -> set[str]:
    found, query = set(), msgspec.structs.replace(query, all_versions=visible.all_versions)
    for row in all_rows:
        browse, read = may(visible, row)
        met = evaluate(
            *(query, row.type, row.acl_id, row.values, row.document().text, read, analyser, IDS), former=row.former
        )
        if browse and met:
            found.add(row.id)
    return found


class IndexFolder:
    """One index folder for many examples: each is written over the one before."""

    def __init__(self, folder: Path, languages: Sequence[str] = ()) -> None:
        self.writer = TantivyWriter(folder, others=languages)
        self.reader = TantivyIndex(folder)
        self._held: set[str] = set()
        self._commits = 0

    def holding(self, documents: Sequence[Document]) -> Snapshot:
        """Hold these documents and no others; in two commits, so that there are several segments."""
        half = len(documents) // 2
        self._commits += 2
        self.writer.apply(documents[:half], self._held, Position(0, self._commits))
        self.writer.apply(documents[half:], (), Position(0, self._commits + 1))
        self._held = {each.key for each in documents}
        return self.reader.snapshot()

    def close(self) -> None:
        self.writer.close()
        self.reader.close()


def ask(snapshot: Snapshot, query: BoundQuery, visible: Visible, limit: int = 100, offset: int = 0) -> Answer:
    return snapshot.search(Search(query, visible, offset, limit, total=True))

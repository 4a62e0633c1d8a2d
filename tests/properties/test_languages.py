"""An index of several languages finds what the oracle finds, and shows nothing of what is hidden (decision 0094)."""

from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.repository.search.analysis.analysis import Analyser
from muniment.repository.search.analysis.compounds import Compounds
from muniment.repository.search.aql.conditions import BoundQuery
from muniment.repository.search.aql.tree import Both, Fulltext, Keywords, Phrase, Term, Without
from muniment.repository.search.index.contract import Visible
from tests.properties import shelves
from tests.properties.lengths import examples
from tests.properties.shelves import SLOW, IndexFolder, Row, ask, found_by_oracle, may

OTHERS = ("French", "German")
SENTENCES = [
    "Die Häuser der Stadt stehen am Ufer, und die Pumpen der Feuerwehr sind schnell.",
    "The houses of the town stand near the river, and the pumps of the firemen are fast.",
    "Les maisons de la ville se trouvent au bord de la rivière, et les pompes sont rapides.",
    "Domy w mieście stoją nad rzeką, a pompy strażaków są szybkie i niezawodne.",
    "Häuser",
    "houses",
    "pumps-pumpen IndexHäuser",
    "Die Hochhäuser und der Pumpenwagen, Hochhaus-Nord am Kühlhaus.",
]
ASKED = ["Haus", "Häuser", "hauser", "house", "pump", "pumpe", "Pumpen", "maison", "ville", "villes", "muenchen"]
ASKED += ["schnell", "schnelle", "fast", "rapide", "IndexHaus", "die", "of", "dom"]
ASKED += ["Hochhaus", "Wagen", "kuehl", "Hochhaus-Nord", "Pumpenhaus"]


@pytest.fixture(scope="module")
def analyser(german: Compounds) -> Analyser:
    return Analyser(others=OTHERS, compounds={"German": german})


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexFolder]:
    made = IndexFolder(tmp_path_factory.mktemp("languages") / "index", OTHERS)
    yield made
    made.close()


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexFolder]:
    made = IndexFolder(tmp_path_factory.mktemp("languages") / "twin", OTHERS)
    yield made
    made.close()


@st.composite
def rows(draw: st.DrawFn) -> list[Row]:
    some = []
    for row in draw(shelves.rows()):
        values = row.values | {"language_code": draw(st.sampled_from([[], ["de"], ["en_GB"], ["French"], ["pl"]]))}
        if draw(st.booleans()):
            values["title"] = [draw(st.sampled_from(SENTENCES))]
        text = draw(st.sampled_from([row.text, *SENTENCES]))
        some.append(msgspec.structs.replace(row, values=values, text=text))
    return some


def keywords() -> st.SearchStrategy[Keywords]:
    words = st.one_of(
        st.builds(Term, st.sampled_from(ASKED), st.booleans()),
        st.builds(Phrase, st.sampled_from([*ASKED, "die Häuser"])),
        shelves.keywords(),
    )
    return st.one_of(words, st.builds(lambda one, two: Both((one, Without(two))), words, words))


def queries() -> st.SearchStrategy[BoundQuery]:
    locales = st.sampled_from(["", "", "de", "en_US", "fr-FR", "pl"])
    return st.builds(BoundQuery, st.just(()), st.builds(Fulltext, keywords()), locales)


@given(rows(), st.lists(queries(), min_size=8, max_size=8), shelves.callers())
@settings(SLOW, max_examples=examples(20, 1000))
def test_hits_are_those_of_the_oracle(
    shelf: IndexFolder, analyser: Analyser, rows: list[Row], queries: list[BoundQuery], visible: Visible
) -> None:
    snapshot = shelf.holding([row.document() for row in rows])
    for query in queries:
        hits = {hit.object_id for hit in ask(snapshot, query, visible).hits}
        assert hits == found_by_oracle(query, visible, rows, analyser), query


@given(rows(), st.lists(queries(), min_size=8, max_size=8), st.one_of(shelves.readers(), shelves.callers()))
@settings(SLOW, max_examples=examples(15, 1000))
def test_hits_excerpts_terms_and_words_are_those_of_the_twin(
    shelf: IndexFolder, twin: IndexFolder, rows: list[Row], queries: list[BoundQuery], visible: Visible
) -> None:
    """A title is read in no language that only the hidden text shows."""
    seen = [
        row.document() if may(visible, row)[1] else msgspec.structs.replace(row, text="").document()
        for row in rows
        if may(visible, row)[0]
    ]
    snapshot, alone = shelf.holding([row.document() for row in rows]), twin.holding(seen)
    everything = Visible(everything=True, all_versions=visible.all_versions)
    for query in queries:
        told, expected = (
            {hit.object_id: (hit.excerpt, hit.terms) for hit in ask(each, query, rights).hits}
            for each, rights in ((snapshot, visible), (alone, everything))
        )
        assert told == expected, query
    for row in rows:
        if may(visible, row)[1]:
            telling, known = (
                each.telling_words(rights, row.id, row.text, 3)
                for each, rights in ((snapshot, visible), (alone, everything))
            )
            assert telling == known, row.text

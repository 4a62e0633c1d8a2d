"""Regular expressions of the engine: they match what patterns match, and the engine takes them."""

import pytest
import tantivy

from muniment.repository.search.aql import patterns
from muniment.repository.search.aql.patterns import Gap, Pattern
from muniment.repository.search.index.tantivy import regexes

TEXTS = [
    "pump",
    "red pump",
    "aaaa",
    "a" * 40,
    "ab" * 20,
    "red pumps of the harbour, and of the town",
    "pümp",
    "日本日本",
]
AROUND: dict[str, tuple[tuple[Gap, ...], tuple[Gap, ...]]] = {
    "equal": ((), ()),
    "contains": ((Gap.RUN,), (Gap.RUN,)),
    "begins": ((), (Gap.RUN,)),
    "ends": ((Gap.RUN,), ()),
}


@pytest.fixture(scope="module")
def index() -> tantivy.Index:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text", stored=True, tokenizer_name="raw")
    made = tantivy.Index(builder.build())
    writer = made.writer(15_000_000, 1)
    for text in {
        variant
        for near in TEXTS
        for word in (near, near[1:], near[:-1], f"x{near}", near[:2] + near[3:], near[:2] + "x" + near[2:], near[::-1])
        for variant in (word, f"a {word}", f"{word} b", f"a {word} b")
    }:
        document = tantivy.Document()
        document.add_text("text", text)
        writer.add_document(document)
    writer.commit()
    made.reload()
    return made


@pytest.mark.slow
@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("text", TEXTS)
def test_a_similar_text_is_found_wherever_it_stands(index: tantivy.Index, text: str, around: str) -> None:
    before, after = AROUND[around]
    alternatives = [Pattern((*before, *each.pieces, *after)) for each in patterns.similar(text)]
    searcher, found = index.searcher(), set()
    for expression in regexes.of_patterns(alternatives):
        query = tantivy.Query.regex_query(index.schema, "text", expression)
        found |= {str(searcher.doc(address).get_first("text")) for _, address in searcher.search(query, 1000).hits}
    everything = searcher.search(tantivy.Query.all_query(), 1000).hits
    texts = {str(searcher.doc(address).get_first("text")) for _, address in everything}
    assert found == {each for each in texts if any(pattern.matches(each) for pattern in alternatives)}
    assert found

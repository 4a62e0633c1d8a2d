"""A query document in JSON: what early clients wrote, nulls, numbers, and the same tree after a round trip."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment.repository.options import RepositoryNames
from muniment.repository.refusals import BadQuery
from muniment.repository.search.aql.spelling import as_json, as_xml
from muniment.repository.search.aql.tree import Property, Query, QueryLimits, RelativeDate

NAMES, LIMITS = RepositoryNames(), QueryLimits()


def read(document: object) -> Query:
    return as_json.read(msgspec.json.encode(document), NAMES, LIMITS)


def test_early_clients_wrote_columns_as_objects() -> None:
    assert read({"columns": [{"name": "title"}, "subject"]}).columns == ("title", "subject")


def test_a_null_is_an_absent_key_and_an_empty_list_changes_nothing() -> None:
    assert read({"types": None, "columns": [], "expression-set": None, "all-versions": False}) == read({})


def test_numbers_and_truth_values_may_be_written_as_such() -> None:
    expression = {"expression-type": "property", "name": "r_full_content_size", "operator": "EQUAL", "value": 7}
    condition = read({"expression-set": {"expressions": [{**expression, "exact-match": True}]}}).condition
    assert condition is not None
    [inner] = condition.expressions  # type: ignore[union-attr]
    assert isinstance(inner, Property)
    assert (inner.value, inner.exact, inner.place) == ("7", True, "expression-set.expressions[0]")


@pytest.mark.parametrize("amount", [-2, "-2"])
def test_an_amount_is_a_number_or_a_text(amount: object) -> None:
    age = {"expression-type": "relative-date", "name": "r_modify_date", "operator": "EQUAL", "time-unit": "DAY"}
    condition = read({"expression-set": {"expressions": [{**age, "value": amount}]}}).condition
    [inner] = condition.expressions  # type: ignore[union-attr]
    assert isinstance(inner, RelativeDate)
    assert inner.amount == -2


def test_a_refusal_names_the_keys_that_lead_to_the_place() -> None:
    with pytest.raises(BadQuery, match=r"\(expression-set\.expressions\[1\]\)"):
        read({"expression-set": {"expressions": [{"expression-type": "fulltext", "value": "a"}, {}]}})


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1, max_size=8).map(str.strip)
LEAVES = st.one_of(
    st.builds(lambda text, fuzzy: {"expression-type": "fulltext", "value": text, "fuzzy": fuzzy}, TEXTS, st.booleans()),
    st.builds(
        lambda text, operator, exact: {
            "expression-type": "property", "name": "title", "operator": operator, "value": text, "exact-match": exact
        },
        TEXTS, st.sampled_from(["EQUAL", "NOT_EQUAL", "CONTAINS", "LESS_THAN"]), st.booleans(),
    ),
    st.builds(
        lambda texts: {"expression-type": "property-list", "name": "title", "operator": "NOT_IN", "values": texts},
        st.lists(TEXTS, min_size=1, max_size=3),
    ),
)  # fmt: skip
SETS = st.recursive(
    LEAVES,
    lambda inner: st.builds(
        lambda operator, several: {"expression-type": "expression-set", "operator": operator, "expressions": several},
        st.sampled_from(["AND", "OR"]),
        st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=6,
)


@pytest.mark.slow
@given(st.lists(SETS, min_size=1, max_size=3))
def test_both_spellings_read_to_the_same_tree(expressions: list[object]) -> None:
    document = msgspec.json.encode({"types": ["document"], "expression-set": {"expressions": expressions}})
    xml = as_xml.write(as_json.elements(document, NAMES, LIMITS)).encode()
    back = as_json.write(as_xml.elements(xml, LIMITS)).encode()
    first, other = as_json.read(document, NAMES, LIMITS), as_xml.read(xml, NAMES, LIMITS)
    assert as_json.read(back, NAMES, LIMITS) == first
    assert _plain(other) == _plain(first)


def _plain(thing: object) -> object:
    match thing:
        case msgspec.Struct():
            return _plain(msgspec.to_builtins(thing))
        case dict():
            return {key: _plain(inner) for key, inner in thing.items() if not key.endswith("place")}
        case list() | tuple():
            return [_plain(inner) for inner in thing]
        case _:
            return thing

"""AQL in XML: the document of given 2.8, and what is refused where."""

import msgspec
import pytest

from muniment.repository.options import RepositoryNames
from muniment.repository.refusals import BadQuery, UnknownType
from muniment.repository.search.aql.spelling import as_xml, wire_names
from muniment.repository.search.aql.tree import (
    Both,
    Expression,
    ExpressionSet,
    Fulltext,
    Phrase,
    Property,
    PropertyList,
    PropertyRange,
    Query,
    QueryLimits,
    RelativeDate,
    Term,
)

NAMES = RepositoryNames()
FIELD = RepositoryNames(vocab_namespace="urn:field", type_prefix="dm_", system_property_prefix="r_")
LIMITS = QueryLimits()
NAMESPACE = f'xmlns="{NAMES.vocab_namespace}"'


def read(body: str, names: RepositoryNames = NAMES, limits: QueryLimits = LIMITS) -> Query:
    query = as_xml.read(body.encode(), names, limits)
    return Query(query.types, None if query.condition is None else bare(query.condition))


def bare(expression: Expression) -> Expression:
    """The expression without its place in the document."""
    if isinstance(expression, ExpressionSet):
        return ExpressionSet(expression.operator, tuple(bare(part) for part in expression.expressions))
    return expression if isinstance(expression, Fulltext) else msgspec.structs.replace(expression, place="")


def read_set(inside: str, limits: QueryLimits = LIMITS) -> Expression | None:
    return read(
        f"<search {NAMESPACE}><expression-set><expressions>{inside}</expressions></expression-set></search>",
        limits=limits,
    ).condition


def test_2_8_the_shown_document_is_read() -> None:
    query = read(f"""<?xml version="1.0" encoding="UTF-8"?>
        <search {NAMESPACE}>
          <types><type>document</type></types>
          <expression-set operator="AND"><expressions>
            <fulltext>valve maintenance</fulltext>
            <property name="object_name" operator="BEGINS_WITH"> pump </property>
            <property-list name="owner_name" operator="IN">
              <values><value>marta</value><value> jon</value></values></property-list>
            <property-range name="r_full_content_size" operator="BETWEEN">
              <from>1000</from><to> 900000 </to></property-range>
          </expressions></expression-set>
        </search>""")
    assert query == Query(
        ("document",),
        ExpressionSet(
            "AND",
            (
                Fulltext(Both((Term("valve"), Term("maintenance")), loose=True)),
                Property("object_name", "BEGINS_WITH", "pump"),
                PropertyList("owner_name", "IN", ("marta", "jon")),
                PropertyRange("r_full_content_size", "BETWEEN", "1000", "900000"),
            ),
        ),
    )


def test_a_prefix_for_the_namespace_reads_alike() -> None:
    prefixed = f'<q:search xmlns:q="{NAMES.vocab_namespace}"><q:types><q:type>report</q:type></q:types></q:search>'
    assert read(prefixed) == read(f"<search {NAMESPACE}><types><type>report</type></types></search>")


def test_a_query_without_conditions_asks_for_everything() -> None:
    assert read(f"<search {NAMESPACE}/>") == Query()


def test_an_absent_operator_means_and() -> None:
    assert read_set("<fulltext>a</fulltext>") == ExpressionSet("AND", (Fulltext(Term("a")),))


def test_sets_nest() -> None:
    inner = '<expression-set operator="OR"><expressions><fulltext>a</fulltext></expressions></expression-set>'
    assert read_set(inner) == ExpressionSet("AND", (ExpressionSet("OR", (Fulltext(Term("a")),)),))


def test_harmless_attributes_are_taken() -> None:
    body = (
        f'<search {NAMESPACE} all-versions="false" include-hidden-objects="false">'
        '<expression-set template="false"><expressions><fulltext fuzzy="false" template="false">a</fulltext>'
        '<property name="keywords" operator="BEGINS_WITH" repeating="true" case-sensitive="false" exact-match="false">'
        "b</property></expressions></expression-set></search>"
    )
    assert isinstance(read(body).condition, ExpressionSet)


def test_the_settings_names_become_neutral() -> None:
    query = read(
        '<search xmlns="urn:field"><types><type>dm_document</type><type>report</type></types>'
        '<expression-set><expressions><property-list name="r_object_type" operator="IN"><values>'
        "<value>dm_folder</value><value>dm_mine</value></values></property-list></expressions></expression-set></search>",
        FIELD,
    )
    assert query.types == ("document", "report")
    assert query.condition == ExpressionSet("AND", (PropertyList("r_object_type", "IN", ("folder", "dm_mine")),))
    for value, neutral in (
        ("dm_document", "document"),
        ("DM_Document", "Document"),
        ("dm_doc*", "dm_doc*"),
        ("dm_d", "d"),
        ("dm_*", "dm_*"),
        ("dm_mine", "dm_mine"),
        ("document", "document"),
    ):
        condition = read(
            '<search xmlns="urn:field"><expression-set><expressions><property name="r_object_type" operator="EQUAL">'
            f"{value}</property></expressions></expression-set></search>",
            FIELD,
        ).condition
        assert condition == ExpressionSet("AND", (Property("r_object_type", "EQUAL", neutral),))
    with pytest.raises(UnknownType, match="dm_document"):
        read('<search xmlns="urn:field"><types><type>document</type></types></search>', FIELD)


def test_a_system_property_is_known_by_the_settings_prefix() -> None:
    names = RepositoryNames(system_property_prefix="sys_")
    assert wire_names.neutral_property("sys_modify_date", names) == "r_modify_date"
    assert wire_names.neutral_property("title", names) == "title"


@pytest.mark.parametrize(
    ("inside", "said"),
    [
        ("loose <fulltext>a</fulltext>", "holds elements, not the text 'loose'"),
        ("<nonsense/>", "no expression 'nonsense'"),
        ("<fulltext><b/></fulltext>", "holds text, no element 'b'"),
        ('<fulltext colour="red">a</fulltext>', "no attribute 'colour'"),
        ('<fulltext fuzzy="maybe">a</fulltext>', "true or false"),
        ('<property operator="BEGINS_WITH">a</property>', "no attribute 'name'"),
        ('<property name="title">a</property>', "The operator of a property is missing: it is EQUAL, NOT_EQUAL"),
        ('<property name="title" operator="LIKE">a</property>', "IS_NULL or IS_NOT_NULL, not 'LIKE'"),
        ('<property name="title" operator="IN">a</property>', "IS_NULL or IS_NOT_NULL, not 'IN'"),
        ('<property-list name="title" operator="IN"/>', "one element 'values', not 0"),
        ('<property-list name="title" operator="IN"><values/></property-list>', "at least one value"),
        ('<property-list name="title" operator="IN"><values><v/></values></property-list>', "no element 'v'"),
        ('<property-range name="size" operator="BETWEEN"><from>1</from></property-range>', "no 'to' value"),
        ('<property-range name="size" operator="BETWEEN"><from/><to>1</to></property-range>', "no 'from' value"),
        ('<property-range name="size"><from>1</from><from>2</from><to>1</to></property-range>', "one 'from'"),
        ('<expression-set operator="XOR"><expressions/></expression-set>', "AND or OR, not 'XOR'"),
        ('<property name="title" operator="UNDEFINED">a</property>', "IS_NOT_NULL, not 'UNDEFINED'"),
        ('<relative-date name="made" operator="GREATER_THAN" time-unit="EON">-1</relative-date>', "YEAR, not 'EON'"),
        ('<relative-date name="made" operator="GREATER_THAN" time-unit="DAY">now</relative-date>', "a whole number"),
        ('<fulltext xmlns="urn:other">a</fulltext>', "namespace 'urn:other'"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(inside: str, said: str) -> None:
    with pytest.raises(BadQuery) as refused:
        read_set(inside)
    assert said in refused.value.sentence
    assert "(line 1, column " in refused.value.sentence


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("<search/>", "namespace ''"),
        ('<search xmlns="urn:other"/>', "namespace 'urn:other'"),
        (f"<find {NAMESPACE}/>", "root element is 'search'"),
        (f"<search {NAMESPACE}><nonsense/></search>", "no element 'nonsense'"),
        (f"<search {NAMESPACE}><types><type>a</type></types><types/></search>", "more than one 'types'"),
        (f"<search {NAMESPACE}><types><typ/></types></search>", "no element 'typ'"),
        (f"<search {NAMESPACE}>", "not well-formed"),
        (f"<!DOCTYPE search><search {NAMESPACE}/>", "document type declaration"),
    ],
)
def test_a_document_of_another_kind_is_refused(body: str, said: str) -> None:
    with pytest.raises(BadQuery) as refused:
        read(body)
    assert said in refused.value.sentence
    assert "(line 1, column " in refused.value.sentence


def test_limits_hold() -> None:
    nested = "<expression-set><expressions>" * 3 + "<fulltext>a</fulltext>" + "</expressions></expression-set>" * 3
    assert read_set(nested, QueryLimits(depth=4))
    with pytest.raises(BadQuery, match="nested deeper than 3"):
        read_set(nested, QueryLimits(depth=3))
    with pytest.raises(BadQuery, match="nested deeper"):
        read_set("<expression-set><expressions>" * 50_000)
    values = "<value>a</value>" * 10
    listed = f'<property-list name="title" operator="IN"><values>{values}</values></property-list>'
    assert read_set(listed, QueryLimits(clauses=12))
    with pytest.raises(BadQuery, match="more than 11"):
        read_set(listed, QueryLimits(clauses=11))
    with pytest.raises(BadQuery, match=r"more than 11 keywords \(line"):
        read_set(f"<fulltext>{'a ' * 12}</fulltext>", QueryLimits(clauses=11))
    with pytest.raises(BadQuery, match="more than 12"):
        read_set(f'<fulltext>"{"a " * 11}"</fulltext>', QueryLimits(clauses=12))


def test_what_is_read_says_where_it_stood() -> None:
    document = f"""<search {NAMESPACE}>
  <types><type>document</type></types>
  <expression-set><expressions>
    <property name="object_name" operator="BEGINS_WITH">a</property>
  </expressions></expression-set>
</search>"""
    query = as_xml.read(document.encode(), NAMES, LIMITS)
    assert query.types_place == "line 2, column 3"
    assert isinstance(query.condition, ExpressionSet)
    assert [getattr(part, "place", "") for part in query.condition.expressions] == ["line 4, column 5"]


def test_every_expression_and_flag_is_read() -> None:
    inside = """
        <property name="title" operator="CONTAINS" exact-match="true" case-sensitive="true">a*b</property>
        <property name="title" operator="EQUAL" fuzzy="true" template="true">pump</property>
        <property name="title" operator="IS_NULL"/>
        <property-list name="title" operator="NOT_IN"><values><value>a</value></values></property-list>
        <relative-date name="r_modify_date" operator="GREATER_THAN" time-unit="YEAR">-2</relative-date>
        <fulltext fuzzy="true">pmup "a b"</fulltext>"""
    assert read_set(inside) == ExpressionSet(
        "AND",
        (
            Property("title", "CONTAINS", "a*b", exact=True),
            Property("title", "EQUAL", "pump", fuzzy=True),
            Property("title", "IS_NULL"),
            PropertyList("title", "NOT_IN", ("a",)),
            RelativeDate("r_modify_date", "GREATER_THAN", -2, "YEAR"),
            Fulltext(Both((Term("pmup", fuzzy=True), Phrase("a b")), loose=True)),
        ),
    )


def test_empty_parts_and_false_flags_change_nothing() -> None:
    parts = "".join(f"<{part}/>" for part in ("types", "columns", "sorts", "locations", "collections", "repositories"))
    body = f"<search {NAMESPACE} all-versions='false'>{parts}<facet-definitions/><expression-set/></search>"
    assert read(body) == Query()
    assert read_set("<expression-set><expressions/></expression-set>") is None


def test_a_comparison_that_begins_with_a_wildcard_counts_as_many() -> None:
    contains = '<property name="title" operator="CONTAINS">a</property>'
    full_width = '<property name="title" operator="EQUAL">\uff0aa</property>'
    for open_comparison in (contains, full_width):
        assert read_set(open_comparison * 3, QueryLimits(clauses=100))
        with pytest.raises(BadQuery, match="more than 98"):
            read_set(open_comparison * 3, QueryLimits(clauses=98))

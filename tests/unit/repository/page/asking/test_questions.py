"""What an address asks, as a query document and as an address again."""

import itertools

import pytest

from muniment.ground.refusals import Malformed
from muniment.ground.xml import Element
from muniment.repository.api.endpoints.search import typed_questions
from muniment.repository.api.endpoints.search.typed_questions import Understood
from muniment.repository.options import RepositoryNames
from muniment.repository.page.asking import choices, questions
from muniment.repository.page.asking.questions import PageQuestion
from muniment.repository.search.aql import typed
from muniment.repository.search.aql.spelling import as_xml, documents
from muniment.repository.search.aql.tree import QueryLimits
from muniment.web.requests import bodies

NAMES = RepositoryNames()
FIELD = RepositoryNames(type_prefix="dm_", system_property_prefix="s_", vocab_namespace="urn:other")

WHOLE = PageQuestion(
    repository="main & more",
    words='red "valve" <ä>',
    chosen={
        "type": ("document", "folder"),
        "format": ("application/pdf",),
        "owner": ("o'neil@staff", "a&b=c@staff"),
        "changed": ("2024", "2026"),
        "size": ("1-9999", "10000000-"),
    },
    folder="0b00000000000001",
    saved="5300000000000001",
    edited="5300000000000002",
    sort="oldest",
    page=3,
    needed="any",
)


def understood(words: str | None) -> Understood:
    """Return what words without fields mean."""
    return Understood(typed.translate(words or ""), [], [], {})


def read(address: str) -> PageQuestion:
    """Read the query of an address."""
    return questions.read(bodies.pairs(address.removeprefix("?").encode(), "The address"))


def test_an_address_says_the_whole_question() -> None:
    assert read(WHOLE.address(page=3)) == WHOLE
    assert read(WHOLE.address()).page == 1
    assert PageQuestion().address() == ""
    assert PageQuestion(words="").address() == "?q="


def test_only_an_address_that_names_something_asks() -> None:
    assert not read("").asks
    assert not read("?in=main&sort=name&page=2").asks
    for address in ("?q=", "?q=x", "?type=document", "?folder=0b1", "?saved=531"):
        assert read(address).asks


def test_a_value_is_taken_away_alone_or_with_its_choice() -> None:
    assert WHOLE.without("changed", "2024").chosen["changed"] == ("2026",)
    assert "changed" not in WHOLE.without("changed").chosen
    assert "format" not in WHOLE.without("format", "application/pdf").chosen
    assert WHOLE.without("format").page == 1


def _document(asked: PageQuestion, names: RepositoryNames) -> Element:
    return asked.document(names, typed_questions.of_words(asked.words or ""))


@pytest.mark.parametrize("names", [NAMES, FIELD])
def test_the_document_of_a_question_is_opened_as_that_question(names: RepositoryNames) -> None:
    whole = PageQuestion(words=WHOLE.words, chosen=WHOLE.chosen, folder=WHOLE.folder, sort=WHOLE.sort)
    parts = [whole, PageQuestion(words="pump"), PageQuestion(words=""), PageQuestion(sort="name", folder="0b1")]
    for asked in (*parts, *(PageQuestion(chosen={name: values}) for name, values in WHOLE.chosen.items())):
        indented = as_xml.write(_document(asked, names), indented=True).encode()
        assert questions.of_document(as_xml.elements(indented, QueryLimits()), names) == asked
    written = as_xml.write(_document(whole, names))
    for ours, others in (("BETWEEN", "EQUAL"), ("true", "false"), ("-12-31", "-12-30"), ("GREATER_EQUAL", "EQUAL")):
        assert ours in written
        other = as_xml.elements(written.replace(ours, others).encode(), QueryLimits())
        assert questions.of_document(other, names) is None


@pytest.mark.parametrize("names", [NAMES, FIELD])
def test_the_document_of_a_question_is_read_back_in_either_spelling(names: RepositoryNames) -> None:
    limits = QueryLimits()
    typed = ("dm_document", "dm_folder") if names is FIELD else ("document", "folder")
    asked = PageQuestion(words=WHOLE.words, chosen={**WHOLE.chosen, "type": typed}, folder=WHOLE.folder, sort="name")
    element = asked.document(names, understood(WHOLE.words))
    query = documents.read(element, names, limits)
    assert as_xml.read(as_xml.write(element).encode(), names, limits) is not None
    assert as_xml.elements(as_xml.write(element, indented=True).encode(), limits).name == "search"
    assert [sort.name for sort in query.sorts] == ["object_name"]
    assert query.locations[0].folder_id == WHOLE.folder
    assert "dm_" not in repr(query.condition)


def test_an_indented_document_says_the_same() -> None:
    element = WHOLE.document(NAMES, understood(WHOLE.words))
    plain, indented = as_xml.write(element), as_xml.write(element, indented=True)
    assert "".join(line.strip() for line in indented.split("\n")) == plain
    assert indented.count("\n") > 20


@pytest.mark.parametrize(
    "address",
    [
        *("page=0", "page=-1", "page=1e3", "page=" + "9" * 12, "sort=x", "changed=99999", "changed=0000", "size=5-6"),
        *("folder=a/b", "saved='", "q=a&q=b", "in=a&in=b", "&".join(f"owner={number}" for number in range(101))),
    ],
)
def test_what_no_page_asks_is_refused(address: str) -> None:
    with pytest.raises(Malformed):
        read(address)


def test_sizes_cover_every_size_once() -> None:
    ends = [value.partition("-") for value in choices._SIZES]
    assert ends[0][0] == "1"
    assert ends[-1][2] == ""
    for (_, _, high), (low, _, _) in itertools.pairwise(ends):
        assert int(low) == int(high) + 1


@pytest.mark.parametrize(
    ("media_type", "label"),
    [
        ("application/pdf", "PDF"),
        ("text/plain; charset=utf-8", "Text (utf-8)"),
        ("TEXT/HTML", "Web page"),
        ("image/x-tga", "Picture (tga)"),
        ("text/x-python; charset=utf-8", "Text (python, utf-8)"),
        ("application/x-thing", "application/x-thing"),
        ("", ""),
    ],
)
def test_formats_have_the_names_that_people_use(media_type: str, label: str) -> None:
    assert choices.format_label(media_type) == label

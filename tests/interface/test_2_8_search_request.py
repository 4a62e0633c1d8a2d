"""given 2.8: the search request document."""

import pytest

from tests.scenes import Feed, Site, begins, between, fulltext, one_of


def test_2_8_types_name_object_types_and_include_sub_types(site: Site) -> None:
    word = site.world.word()
    document = site.create(f"{word} one")
    cabinet = site.cabinet(f"{word} two")
    site.world.catch_up()

    def found(*types: str) -> set[str | None]:
        answer = site.post_search(site.aql(fulltext(word), types=types))
        return set(Feed(answer, site).ids)

    assert found("document") == {document}
    assert found("cabinet") == {cabinet}
    assert found("folder") == {cabinet}, "a cabinet is a folder"
    assert found("sysobject") == {document, cabinet}
    assert found("document", "folder") == {document, cabinet}


def test_2_8_an_expression_set_with_and_needs_all(site: Site) -> None:
    word, other = site.world.word(), site.world.word()
    both = site.create(f"{word} {other}")
    site.create(word)
    site.world.catch_up()
    assert site.search(fulltext(word), fulltext(other)).ids == [both]
    assert site.search(fulltext(word), begins("object_name", word), fulltext(other)).ids == [both]


def test_2_8_an_expression_set_with_or_needs_one(site: Site) -> None:
    word, other = site.world.word(), site.world.word()
    one, two = site.create(word), site.create(other)
    site.world.catch_up()
    answer = site.post_search(site.aql(fulltext(word), fulltext(other), operator="OR"))
    assert set(Feed(answer, site).ids) == {one, two}


def test_2_8_expression_sets_nest(site: Site) -> None:
    word, other, third = (site.world.word() for _ in range(3))
    one = site.create(f"{word} {other}")
    two = site.create(f"{word} {third}")
    site.create(word)
    site.world.catch_up()
    either = (
        f'<expression-set operator="OR"><expressions>{fulltext(other)}{fulltext(third)}</expressions></expression-set>'
    )
    assert set(site.search(fulltext(word), either).ids) == {one, two}


def test_2_8_fulltext_finds_keywords_in_the_content(site: Site) -> None:
    word = site.world.word()
    made = site.create("plain name", f"The text speaks of {word} once.".encode())
    site.world.catch_up()
    assert site.search(fulltext(word)).ids == [made]


def test_2_8_property_begins_with(site: Site) -> None:
    word = site.world.word()
    one, two = site.create(f"{word} alpha"), site.create(f"{word}omega")
    site.create(f"before {word}")
    site.world.catch_up()
    assert set(site.search(begins("object_name", word)).ids) == {one, two}
    assert site.search(begins("object_name", f"{word} a")).ids == [one]


def test_2_8_property_list_in(site: Site) -> None:
    word = site.world.word()
    mine = site.create(word)
    theirs = site.create(word, person=site.world.reader)
    site.share(theirs, person=site.world.reader)
    site.world.catch_up()
    writer, reader = site.world.writer.id, site.world.reader.id
    assert site.search(fulltext(word), one_of("owner_name", writer)).ids == [mine]
    assert set(site.search(fulltext(word), one_of("owner_name", writer, reader)).ids) == {mine, theirs}
    assert site.search(fulltext(word), one_of("owner_name", "nobody@demo")).ids == []


def test_2_8_property_range_between_includes_both_ends(site: Site) -> None:
    word = site.world.word()
    sizes = {size: site.create(f"{word} {size}", b"x" * size) for size in (9, 10, 15, 20, 21)}
    site.world.catch_up()
    found = site.search(fulltext(word), between("r_full_content_size", "10", "20")).ids
    assert set(found) == {sizes[10], sizes[15], sizes[20]}


def test_2_8_a_wider_range_loses_nothing(site: Site) -> None:
    word = site.world.word()
    for size in (5, 50, 500):
        site.create(word, b"y" * size)
    site.world.catch_up()
    narrow = set(site.search(fulltext(word), between("r_full_content_size", "40", "60")).ids)
    wide = set(site.search(fulltext(word), between("r_full_content_size", "1", "1000")).ids)
    assert len(narrow) == 1
    assert len(wide) == 3
    assert narrow < wide


@pytest.mark.parametrize(
    "document",
    [
        '<search xmlns="{vocab}"><types><type>{document}</type></types></search>',
        '<v:search xmlns:v="{vocab}"><v:types><v:type> {document} </v:type></v:types></v:search>',
        '<?xml version="1.0" encoding="UTF-8"?>\n<!-- said -->\n<search xmlns="{vocab}"/>',
    ],
)
def test_2_8_the_document_may_be_spelled_as_xml_allows(site: Site, document: str) -> None:
    text = document.format(vocab=site.names.vocab_namespace, document=site.type("document"))
    assert site.post_search(text).status_code == 200


def test_2_8_the_root_is_search_in_the_vocabulary_namespace(site: Site) -> None:
    for text in ("<search/>", '<search xmlns="urn:another"/>', f'<find xmlns="{site.names.vocab_namespace}"/>'):
        answer = site.post_search(text)
        assert answer.status_code == 400
        assert "line 1" in answer.text

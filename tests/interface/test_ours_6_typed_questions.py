"""ours 6 and 15: what people type; docs/aql.md, "As people type"; docs/decisions/0092."""

import json
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.pages import Reader
from tests.scenes import Feed, Site, fulltext


def ask(site: Site, q: str, *, words: str = "auto", **parameters: str) -> Feed:
    """Type a question; the answer is the feed of a GET."""
    return site.keywords(q, person=None, words=words, **parameters)


@pytest.fixture(scope="module")
def writer(site: Site) -> Reader:
    """The writer, signed in on the search page."""
    return Reader(site, site.world.writer)


def hits_of(reader: Reader) -> list[str]:
    return [urlsplit(link).path.rpartition("/")[2] for link in reader.root.xpath("//li/h3/a/@href")]


@pytest.mark.parametrize("question", ["{a} not {b}", "{A} NOT {B}", "{a} or not {b}", "{a} And {b}"])
def test_ours_6_operators_of_a_typed_question_are_words_and_the_sequence_comes_first(site: Site, question: str) -> None:
    a, b = site.world.word(), site.world.word()
    asked = question.format(a=a, b=b, A=a.upper(), B=b.upper())
    # By its score alone the first one would come first: it is short, and holds both words often.
    both = site.create("x", f"{b} {a} {b} {a} or not and".encode())
    sequence = site.create("y", f"a long text in which nothing else counts says {asked} at its very end".encode())
    one = site.create("z", f"{a} alone".encode())
    site.world.catch_up()
    found = ask(site, asked)
    assert found.ids == [sequence, both, one]
    assert ask(site, asked, words="any").ids == found.ids
    strict = site.feed(found.link(f"{site.names.own_linkrel_base}/all-words") or "")
    assert strict.ids == [sequence, both]
    assert site.feed(found.link("self") or "").ids == found.ids


def test_ours_6_operators_of_the_language_stay_where_all_words_are_needed(site: Site) -> None:
    a, b = site.world.word(), site.world.word()
    both, one = site.create("x", f"{a} not {b}".encode()), site.create("y", f"{a} alone".encode())
    site.world.catch_up()
    for q, expected in ((f"{a} not {b}", [one]), (f"{a} or {b}", [one, both]), (f"{a} -{b}", [both])):
        assert set(site.keywords(q).ids) == set(expected), q
        assert set(site.search(fulltext(q)).ids) == set(expected), q
    for q, expected in ((f"{a} NOT {b}", [one]), (f"{a} OR {b}", [one, both])):
        assert set(ask(site, q).ids) == set(expected), "operators in capitals"


def test_ours_6_the_field_asks_for_all_words_by_default(site: Site) -> None:
    a, b = site.world.word(), site.world.word()
    one = site.create("x", a.encode())
    site.world.catch_up()
    feed = site.feed(site.search_address, {"q": f"{a} or {b}"})
    relaxed = feed.answer.headers.get("Muniment-Words")
    assert (feed.ids, relaxed) == ([one], None if site.kind == "field" else "any")


def test_ours_6_fields_narrow_a_typed_question(site: Site) -> None:
    word, other = site.world.word(), site.world.word()
    cabinet = site.cabinet(f"cabinet {word}")
    made = site.http.post(
        f"{site.repository}/folders/{cabinet}/documents",
        json={"properties": {"object_name": f"{word} report.pdf", "title": f"Annual {word} report"}},
        headers=site.bearer(),
    )
    inside = made.json()["properties"]["r_object_id".replace("r_", site.names.system_property_prefix)]
    plain = site.create(f"{word}.txt", word.encode())
    site.world.catch_up()
    today = datetime.now(UTC)
    before, after = today - timedelta(days=40), today + timedelta(days=2)
    every = {cabinet, inside, plain}
    for field, expected in (
        ("type:document", {inside, plain}),
        ("-type:document", {cabinet}),
        ("type:folder", {cabinet}),
        ("type:cabinet type:document", every),
        (f"type:{site.type('document')}", {inside, plain}),
        ("name:report", {inside}),
        ("name:*.txt", {plain}),
        ("-name:report", {cabinet, plain}),
        (f'title:"annual {word}"', {inside}),
        ("format:txt", {plain}),
        ("format:text/plain", {plain}),
        ("format:text", {plain}),
        ("NOT format:text", {cabinet, inside}),
        (f"owner:{site.world.writer.id}", every),
        (f"owner:{site.world.writer.id.partition('@')[0]}", every),
        ("owner:nobody", set()),
        (f'in:"/cabinet {word}"', {inside}),
        (f'in:"cabinet {word}" type:document', {inside}),
        (f"before:{after:%Y-%m-%d} after:{before:%Y-%m}", every),
        (f"before:{before:%Y-%m-%d}", set()),
        ("after:2001", every),
        ("-after:2001", set()),
    ):
        assert set(ask(site, f"{word} {field}").ids) == expected, field
        assert not ask(site, f'{other} "{other}" {field}').ids, "the words hold as well"
    refused = site.http.get(
        site.search_address,
        params={"q": f'{word} in:"cabinet {word}"', "words": "auto", "locations": "/x"},
        headers=site.bearer(),
    )
    assert refused.status_code == 400
    assert "in:" in refused.text


def test_ours_6_what_only_looks_like_a_field_is_words(site: Site) -> None:
    word = site.world.word()
    made = site.create("x", f"meet at 12:30, see http://{word}.org, blood type:{word} or in:{word}".encode())
    site.world.catch_up()
    for q in (
        f"{word} at 12:30",
        f"http://{word}.org",
        f"type:{word}",
        f"in:{word}",
        f"blood type: {word}",
        f"see:{word}",
    ):
        assert made in ask(site, q).ids or q.startswith("see:"), q


def test_ours_6_fields_in_several_repositories(site: Site) -> None:
    word = site.world.word()
    cabinet, plain = site.cabinet(word), site.create(word, word.encode())
    site.world.catch_up()

    def everywhere(q: str) -> list[str | None]:
        address = f"/{site.names.prefix}/search"
        return site.feed(address, {"q": q, "words": "auto"}).ids

    assert everywhere(f"{word} type:folder") == [cabinet]
    assert set(everywhere(f"{word} in:nowhere")) == {cabinet, plain}, "in no repository a folder: words"


def test_ours_6_a_star_alone_finds_everything(site: Site, writer: Reader) -> None:
    site.create("x", b"x")
    site.world.catch_up()
    everything = ask(site, "", include_total="true").total
    for q in ("*", " ** "):
        assert ask(site, q, include_total="true").total == everything
        assert site.keywords(q, include_total="true").total == everything
    assert not ask(site, "...").ids
    writer.search("*")
    assert hits_of(writer)


def test_ours_6_a_correction_is_near_and_common_and_fits_the_other_words(site: Site) -> None:
    base = site.world.word()
    site.create("a", f"{base} {base}flange".encode())
    for number in range(3):
        site.create(f"b{number}", f"{base} {base}flag {base}flagna".encode())
    site.create("c", f"{base}flagnet alone".encode())
    site.create("d", f"pump {base}valve and {base}value".encode())
    site.create("e", f"{base}value".encode())
    site.world.catch_up()

    def corrected(q: str) -> str:
        answer = site.http.get(
            f"{site.search_address}/suggestions",
            params={"q": f"{q} "},
            headers=site.bearer() | {"Accept": "application/json"},
        )
        return str(answer.json()["correction"]["text"])

    # One letter differs in flagna and in flange; the first is the commoner one.
    assert corrected(f"{base} {base}flagne") == f"{base} {base}flagna"
    assert corrected(f"{base}flangee") == f"{base}flange"
    assert corrected(f"{base}valze") == f"{base}value", "two objects hold it"
    assert corrected(f"pump {base}valze") in (f"pump {base}valve", f"pump {base}value")
    assert corrected(f"{base} {base}flagnee") == f"{base} {base}flagna", "flagnet is nearer, and not with that word"


# The page


def test_ours_15_the_page_names_what_is_left_out_and_offers_it_as_a_word(site: Site, writer: Reader) -> None:
    a, b = site.world.word(), site.world.word()
    both, one = site.create("x", f"{a} {b}".encode()), site.create("y", a.encode())
    site.world.catch_up()
    writer.search(f"{a} -{b}")
    assert hits_of(writer) == [one]
    assert f"Without what has “{b}”." in writer.text
    writer.follow("Search for it as a word")
    assert hits_of(writer)[0] == both
    assert "Without what has" not in writer.text


def test_ours_15_the_page_says_how_a_question_was_read(site: Site, writer: Reader) -> None:
    a = site.world.word()
    for question, told, offered in (
        (f"filetype:csv {a}", "There is no field filetype:", f"format:csv {a}"),
        (f"type:{a}", f"There is no type '{a}'. So “type:{a}” is searched as words.", ""),
        (f"format:{a} x", "There is no format", ""),
        (f"after:yesterday {a}", "Write a day, a month or a year, such as after:2026-05-31.", ""),
        (f"in:/no/{a}", "There is no folder", ""),
        (f'"annual {a}"~3', "A number after a phrase says nothing here", f'"annual {a}"'),
    ):
        writer.search(question)
        (hint,) = writer.root.xpath("//ul[@class='notice hints']/li")
        assert told in " ".join(hint.text_content().split())
        links = [parse_qs(urlsplit(link).query)["q"] for link in hint.xpath("a/@href")]
        assert links == ([[offered]] if offered else [])


def test_ours_15_a_typed_question_is_shown_as_aql_that_finds_the_same(site: Site, writer: Reader) -> None:
    a, b = site.world.word(), site.world.word()
    site.create("x", f"{b} {a} not {a}".encode())
    sequence = site.create("y", f"a long text that says {a} not {b} at its very end".encode())
    left_out = site.create("z", f"{a} {b} unwanted".encode())
    site.world.catch_up()
    writer.search(f"{a} not {b} -unwanted type:document")
    found = hits_of(writer)
    assert found[0] == sequence
    assert left_out not in found
    (code,) = writer.root.xpath("//pre[@aria-labelledby='as-json']/code")
    document = json.loads(code.text_content())
    answer = site.http.post(
        f"{site.search_address}?words=auto", json=document, headers=site.bearer() | {"Accept": "application/atom+xml"}
    )
    assert Feed(answer, site).ids == found
    writer.send("Save", {"name": a})
    assert set(hits_of(writer)) >= {sequence}
    assert left_out not in hits_of(writer)


def test_ours_15_a_folder_in_the_words_cannot_be_narrowed_to_another(site: Site, writer: Reader) -> None:
    word = site.world.word()
    cabinet = site.cabinet(word)
    site.world.catch_up()
    writer.search(f"x in:{word}", folder=cabinet, status=400)
    assert "cannot be narrowed to another one" in writer.text


def test_ours_15_a_limit_of_words_is_told(site: Site, writer: Reader) -> None:
    a = site.world.word()
    site.create("x", a.encode())
    site.world.catch_up()
    writer.search(" ".join([a, *(f"{a}x{number}" for number in range(65))]))
    assert "Only the first 64 words were looked for: 2 more are left out." in writer.text
    assert len(hits_of(writer)) == 1

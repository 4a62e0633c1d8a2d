"""ours 15: the search page, as somebody without JavaScript uses it."""

import base64
import json
import re
import shlex
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import pytest

from muniment.directory.administration import decisions
from muniment.directory.entries import entries, memberships
from muniment.repository.page import frame, searching
from muniment.repository.store import repositories
from muniment.repository.store.saved import saved_searches
from tests.pages import SEARCH, Reader, parameters
from tests.scenes import Loop, Person, Served, Site, World

EVIL = '"><script>alert(1)</script><img src=x onerror=alert(1)>&amp;{{7*7}}'


@pytest.fixture(scope="module")
def writer(site: Site) -> Reader:
    """The writer, signed in."""
    return Reader(site, site.world.writer)


@pytest.fixture(scope="module", params=["together", "apart"])
def alone(request: pytest.FixtureRequest, world: World, loop: Loop) -> Iterator[Site]:
    """A site of both halves, and a repository whose directory is another server's."""
    with closing(Site(world, "neutral", loop)) as both:
        if request.param == "together":
            yield both
            return
        with closing(Served(both)) as served:
            url = f"{served.base}{both.oauth}/tokeninfo"
            elsewhere = (f"repository.tokeninfo_url={url}", f"repository.tokeninfo_ca_file={served.ca_file}")
            with closing(Site(world, "neutral", loop, "halves=repository", *elsewhere)) as apart:
                both.bearer()  # which the other site cannot get: it has no directory
                yield apart


def shown_code(reader: Reader, name: str) -> str:
    """Give the text of one of the listings that show the question to programs."""
    (code,) = reader.root.xpath("//pre[@aria-labelledby=$label]/code", label=f"as-{name}")
    return str(code.text_content())


def objects_of(reader: Reader) -> list[str]:
    """Give the ids of the hits of a page."""
    links = reader.root.xpath("//section[@class='hits']//li/h3/a/@href")
    return [urlsplit(link).path.rpartition("/")[2] for link in links]


def permitted(site: Site, accessor: str, permission: str) -> dict[str, str]:
    """Write an ACL entry for the owner or the world."""
    return {"accessor": site.names.type_prefix + accessor, "basic-permission": permission}


# Signing in


def test_who_is_not_signed_in_signs_in_and_finds_what_they_asked(alone: Site) -> None:
    world = alone.world
    word = world.word()
    found = alone.create(f"{word}.txt", f"the {word} leaks".encode())
    world.catch_up()
    reader = Reader(alone).search(f"{word} leaks", type="document", words="all")
    assert reader.path.startswith("/search/sign-in?to=")
    assert f"Then you search for {word} leaks" in reader.text
    reader.sign_in(world.writer)
    assert dict(parameters(reader.path)) == {"q": f"{word} leaks", "type": "document", "words": "all"}
    assert objects_of(reader) == [found]
    assert world.writer.id in reader.text


def test_a_wrong_password_says_what_to_do_and_keeps_what_was_typed(alone: Site) -> None:
    person = alone.world.person()
    reader = Reader(alone).search("pump").sign_in(person, "wrong")
    assert "Check the user name and the password" in reader.text
    assert reader.root.get_element_by_id("username").get("value") == person.id
    assert not reader.root.get_element_by_id("password").get("value")
    assert reader.sign_in(person).path == "/search?q=pump"


def test_guards_that_do_not_admit_somebody_are_in_nobodys_way(site: Site, world: World) -> None:
    with world.repository_db.begin() as cx:
        guarded = [
            repositories.add(cx, f"a-{world.word()}", world.resource(activated=True).id, "", world.clock())
            for _ in range(5)
        ]
    person = world.person()
    try:
        assert Reader(site, person).path == SEARCH
    finally:
        with world.repository_db.begin() as cx:
            for repository in guarded:
                repositories.remove(cx, repository)


def test_either_of_two_forms_that_were_opened_at_one_time_signs_in(site: Site) -> None:
    person, reader = site.world.person(), Reader(site)
    first, second = (Reader(site).open(f"{SEARCH}/sign-in") for _ in range(2))
    for form in (first, second):
        reader.http.cookies.update(form.http.cookies)
    for form in (first, second):
        (token,) = form.root.xpath("//input[@name='csrf']/@value")
        sent = {"csrf": token, "username": person.id, "password": person.password}
        assert reader.http.post(f"{SEARCH}/sign-in", data=sent | {"password": "wrong"}).status_code == 200
    assert reader.http.post(f"{SEARCH}/sign-in", data=sent, follow_redirects=False).status_code == 303
    assert not [name for name in reader.http.cookies if "form" in name]


def test_somebody_outside_the_role_stays_outside(alone: Site) -> None:
    assert "That did not work" in Reader(alone, alone.world.outsider).text


def test_the_cookie_holds_the_token_sealed_and_no_script_of_a_page_may_read_it(site: Site, world: World) -> None:
    reader = Reader(site)
    reader.http.follow_redirects = False
    reader.open(f"{SEARCH}/sign-in")
    answer = reader.send("Sign in", {"username": world.writer.id, "password": world.writer.password})
    assert answer.status_code == 303
    cookie = next(line for line in answer.headers.get_list("set-cookie") if line.startswith(f"{frame.COOKIE}="))
    assert {part.strip() for part in cookie.split(";")[1:]} == {"HttpOnly", "Path=/", "SameSite=Lax", "Secure"}
    value = cookie.partition("=")[2].partition(";")[0]
    assert len(value) < 4000
    assert re.fullmatch(r"[A-Za-z0-9_-]+", value)
    assert b"mt_" not in base64.urlsafe_b64decode(value + "==")
    assert answer.headers["cache-control"] == "no-store"
    for broken in (value[:-2], value[::-1], "", "x", "é"):
        sent = site.http.get(f"{SEARCH}?q=x", headers={b"Cookie": f"{frame.COOKIE}={broken}".encode()})
        assert sent.status_code == 303


def test_a_token_or_a_ticket_in_a_header_opens_no_page(site: Site) -> None:
    assert site.http.get(f"{SEARCH}?q=x", headers=site.bearer()).status_code == 303


@pytest.mark.parametrize(
    "to",
    ["https://evil.example/", "//evil.example", "/\\evil.example", "/sign-in", "?q=a\nb", "/../dirws/console", "@evil"],
)
def test_the_sign_in_leads_to_no_other_place(site: Site, to: str) -> None:
    reader = Reader(site).open(f"{SEARCH}/sign-in", to=to)
    reader.sign_in(site.world.writer)
    assert reader.path == SEARCH


@pytest.mark.parametrize(("form", "path"), [("Sign in", "/sign-in"), ("Sign out", ""), ("Save", "?q=x")])
def test_a_form_of_another_site_or_without_its_mark_does_nothing(site: Site, form: str, path: str) -> None:
    person = None if form == "Sign in" else site.world.person()
    reader = Reader(site, person).open(SEARCH + path)
    for changes in ({"csrf": "forged"}, {"csrf": None}, {"csrf": ""}):
        again = Reader(site)
        again.http.cookies, again.answer = reader.http.cookies, reader.answer
        answer = again.send(form, {"username": "x", "password": "y", **changes})
        assert answer.status_code == 403
        assert "This is not allowed" in answer.text
    marks = [field.get("value") for field in reader.root.xpath("//input[@name='csrf']")]
    address = {"Sign in": "/sign-in", "Sign out": "/sign-out", "Save": "/saved"}[form]
    foreign = reader.http.post(
        SEARCH + address, data={"csrf": marks[0]}, headers={"Sec-Fetch-Site": "cross-site"}, follow_redirects=False
    )
    assert foreign.status_code == 403
    if person is not None:
        assert reader.open(SEARCH).path == SEARCH


def test_a_mark_is_good_for_its_own_sign_in_alone(site: Site) -> None:
    one, other = (Reader(site, site.world.person()) for _ in range(2))
    mark = one.root.xpath("//input[@name='csrf']")[0].get("value")
    assert other.send("Sign out", {"csrf": mark}).status_code == 403


def test_signing_out_ends_the_token_and_a_stolen_cookie_with_it(alone: Site) -> None:
    reader = Reader(alone, alone.world.person())
    stolen = dict(reader.http.cookies)
    reader.send("Sign out")
    assert "You are signed out" in reader.text
    thief = Reader(alone)
    thief.http.cookies.update(stolen)
    assert thief.search("x").path.startswith("/search/sign-in")


def test_a_sign_in_that_has_ended_leads_back_to_the_page_that_was_asked_for(site: Site) -> None:
    person = site.world.person()
    reader = Reader(site, person).search("pump", sort="name")
    with site.world.directory_db.begin() as cx:
        decisions.sign_out(cx, site.world.entry(person), site.world.clock())
    asked = reader.path
    reader.open(asked)
    assert reader.path.startswith("/search/sign-in")
    assert reader.sign_in(person).path == asked
    site_of_forms = Reader(site, person).search("pump")
    with site.world.directory_db.begin() as cx:
        decisions.sign_out(cx, site.world.entry(person), site.world.clock())
    site_of_forms.send("Save", {"name": "x"})
    assert site_of_forms.path.startswith("/search/sign-in")
    assert dict(parameters(site_of_forms.sign_in(person).path))["q"] == "pump"


# Searching


def test_a_hit_tells_its_type_owner_date_size_and_folder_and_marks_what_matched(site: Site, writer: Reader) -> None:
    word = site.world.word()
    cabinet = site.cabinet(f"cabinet {word}")
    made = site.http.post(
        f"{site.repository}/folders/{cabinet}/documents",
        json={"properties": {"object_name": "a.txt", "title": f"About {word}"}},
        headers=site.bearer(),
    )
    object_id = made.json()["properties"]["r_object_id"]
    site.http.post(
        f"{site.repository}/objects/{object_id}/contents",
        content=f"Two {word} pumps were drained before winter.".ljust(52).encode(),
        headers=site.bearer() | {"Content-Type": "text/plain"},
    )
    site.world.catch_up()
    writer.search(f"{word} pump")
    assert writer.titles[0] == f"About {word}"
    assert writer.marked[:2] == [word, "pumps"]
    for told in ("a.txt", "document, Text", site.world.writer.id, "21 Nov 2026", "52 bytes", f"in cabinet {word}"):
        assert told in writer.text, told
    writer.follow(f"in cabinet {word}")
    assert objects_of(writer) == [object_id]
    assert f"Folder: cabinet {word}" in writer.text


def test_several_values_of_a_choice_are_alternatives_and_choices_go_together(site: Site, writer: Reader) -> None:
    word = site.world.word()
    site.cabinet(f"{word} cabinet")
    small, large = site.create(f"{word} one", b"x" * 20), site.create(f"{word} two", b"y" * 20_000)
    site.world.catch_up()
    document, cabinet = site.type("document"), site.type("cabinet")
    writer.search(word)
    assert writer.values("type") == {document: (2, False), cabinet: (1, False)}
    assert writer.values("size") == {"1-9999": (1, False), "10000-99999": (1, False)}
    writer.search(word, type=document)
    assert set(objects_of(writer)) == {small, large}
    assert writer.values("type") == {document: (2, True), cabinet: (1, False)}
    writer.search(word, type=[document, cabinet])
    assert len(writer.titles) == 3
    writer.search(word, type=[document, cabinet], size="10000-99999", changed="2026", owner=site.world.writer.id)
    assert objects_of(writer) == [large]
    assert writer.values("size") == {"1-9999": (1, False), "10000-99999": (1, True)}
    writer.follow("Remove Size: 10 to 100 kB×")
    assert set(objects_of(writer)) == {small, large}, "a cabinet has no content, and no year"
    assert writer.search(word, changed="1999").text.count("Search without changed 1999") == 1


def test_the_years_and_the_order_by_date_are_those_of_the_contents(site: Site, writer: Reader) -> None:
    word = site.world.word()
    new, old = (
        site.create(f"{word} {when}", b"text", a_content_date=when)
        for when in ("2001-02-03", "1999-12-31T23:59:59.999Z")
    )
    plain = site.create(f"{word} plain", b"text")
    site.world.catch_up()
    writer.search(word, sort="newest")
    assert objects_of(writer) == [plain, new, old]
    assert writer.values("changed") == {"2026": (1, False), "2001": (1, False), "1999": (1, False)}
    assert "3 Feb 2001" in writer.text
    assert objects_of(writer.search(word, sort="oldest")) == [old, new, plain]
    assert objects_of(writer.search(word, changed="1999")) == [old]
    assert "Date of the content" in writer.open(f"/search/objects/{old}").text


def test_the_page_of_an_object_says_why_it_shows_no_text(site: Site, writer: Reader) -> None:
    contents = {
        "No text was found in it.": b" \n ",
        "Its content is empty.": b"",
        "It has no content.": None,
    }
    made = {why: site.create("a.html", content) for why, content in contents.items()}
    site.world.catch_up()
    made["Its text has not been read yet."] = site.create("b.html", b"<p>words</p>")
    for why, object_id in made.items():
        assert why in writer.open(f"/search/objects/{object_id}").text, why


def test_hits_are_sorted_and_pages_have_addresses_that_can_be_shared(site: Site, writer: Reader) -> None:
    word = site.world.word()
    for number in range(searching.HITS + 3):
        site.create(f"{word} {number:02}", b"x" * (100 - number))
    site.world.catch_up()
    writer.search(word, sort="name")
    assert writer.titles == [f"{word} {number:02}" for number in range(searching.HITS)]
    writer.follow("Next page")
    assert writer.titles == [f"{word} {number:02}" for number in range(searching.HITS, searching.HITS + 3)]
    shared = writer.path
    assert Reader(site, site.world.writer).open(shared).titles == writer.titles
    writer.follow("Previous page")
    assert dict(parameters(writer.path)) == {"q": word, "sort": "name"}
    assert writer.search(word, sort="largest").titles[0] == f"{word} 00"
    assert writer.search(word, sort="newest", page=2).titles
    assert "this page lies behind the last one" in writer.search(word, page=7).text
    assert writer.search(word, status=400, page=99_999).text.count("This cannot be searched") == 1


def test_the_question_is_shown_as_aql_that_finds_the_same(site: Site, writer: Reader) -> None:
    word = site.world.word()
    cabinet = site.cabinet(f"{word} cabinet")
    for name in ("one", "it's two", 'three "3"'):
        site.create(f"{word} {name}", b"some text", title=f"{name} & <more>")
    site.world.catch_up()
    asked = {"type": site.type("document"), "owner": [site.world.writer.id, "o'neil@demo"], "changed": ["2026", "2025"]}
    writer.search(f"{word} NOT nothing", asked, size="1-9999", sort="name")
    ids = objects_of(writer)
    assert len(ids) == 3
    assert cabinet not in ids
    for name, media_type in (("xml", "application/xml"), ("json", "application/json")):
        answer = site.http.post(
            site.search_address,
            content=shown_code(writer, name).encode(),
            headers=site.bearer() | {"Content-Type": media_type, "Accept": "application/json"},
        )
        assert [entry["id"] for entry in answer.json()["entries"]] == ids
    command = shlex.split(shown_code(writer, "curl").replace("\\\n", ""))
    address = next(part for part in command if part.startswith("https://"))
    body = command[command.index("-d") + 1]
    assert json.loads(body) == json.loads(shown_code(writer, "json"))
    answer = site.http.post(
        address,
        content=body,
        headers=site.bearer() | {"Content-Type": "application/json", "Accept": "application/json"},
    )
    assert [entry["id"] for entry in answer.json()["entries"]] == ids


@pytest.mark.parametrize(
    "words", ["'; touch /tmp/x; '", "a\nAQL\nrm -rf x", "$(id) `id`", EVIL, "]]><x/>", "\x01\x1b[2J"]
)
def test_the_command_that_is_shown_is_one_command_whatever_was_asked(writer: Reader, words: str) -> None:
    writer.search(words)
    command = shlex.split(shown_code(writer, "curl").replace("\\\n", ""))
    assert command[0] == "curl"
    assert len(command) == 10
    assert "\x1b" not in shown_code(writer, "curl")


def test_a_question_of_which_few_have_all_words_says_so_and_leads_to_both(site: Site, writer: Reader) -> None:
    one, other = site.world.word(), site.world.word()
    both = site.create("both", f"{one} and {other}".encode())
    single = site.create("single", one.encode())
    site.world.catch_up()
    writer.search(f"{one} {other}")
    assert objects_of(writer) == [both, single]
    assert set(objects_of(writer.search(f"{one} {other}", sort="name"))) == {both, single}
    writer.follow("Only those with all words")
    assert objects_of(writer) == [both]
    writer.follow("Also what has some of them")
    assert len(objects_of(writer)) == 2


def test_nothing_found_says_what_was_tried_and_what_to_try(site: Site, writer: Reader) -> None:
    word = site.world.word()
    site.create(f"{word} here", b"text")
    site.world.catch_up()
    writer.search(f'"{word} nowhere"', type=site.type("document"), owner="nobody@demo")
    text = writer.text
    assert "Nothing found" in text
    assert f'what you typed: "{word} nowhere"' in text
    assert "type document, owner nobody@demo" in text
    for way in ("Search without type document", "Search without owner nobody@demo", "Search without the quotes"):
        assert way in text
    writer.follow("Search without owner nobody@demo").follow("Search without the quotes")
    assert writer.titles == [f"{word} here"]


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"q": "(" * 60 + "x" + ")" * 60}, "nested"),
        ({"q": "x", "folder": "0b00000000000000"}, "folder"),
        ({"q": "a*b* " * 600}, ""),
    ],
)
def test_what_cannot_be_searched_says_why_above_the_box(writer: Reader, asked: dict[str, str], sentence: str) -> None:
    writer.open(SEARCH, asked, status=400)
    assert "This cannot be searched" in writer.text
    assert sentence in writer.text
    assert writer.root.get_element_by_id("q").get("value") == asked["q"][:2000] or len(asked["q"]) > 2000


@pytest.mark.parametrize(
    "query",
    [
        *("page=0", "page=x", "sort=price", "changed=99", "size=big", "folder=..%2F..", "saved=%27", "q=a&q=b"),
        *("q=%FF", "q=%00", "in=nowhere&q=x", "type=" + "&type=".join(map(str, range(200)))),
    ],
)
def test_an_address_that_cannot_be_read_is_refused_on_a_page(writer: Reader, query: str) -> None:
    writer.answer = writer.http.get(f"{SEARCH}?{query}")
    assert writer.answer.status_code in {400, 404}
    assert "Go to the front page" in writer.text


def test_the_command_of_a_relaxed_question_in_an_order_finds_the_same(site: Site, writer: Reader) -> None:
    one, other = site.world.word(), site.world.word()
    for word in (one, other):
        site.create(word, word.encode())
    site.world.catch_up()
    writer.search(f"{one} {other}", sort="name")
    ids = objects_of(writer)
    assert len(ids) == 2
    command = shlex.split(shown_code(writer, "curl").replace("\\\n", ""))
    answer = site.http.post(
        next(part for part in command if part.startswith("https://")),
        content=command[command.index("-d") + 1],
        headers=site.bearer() | {"Content-Type": "application/json", "Accept": "application/json"},
    )
    assert [entry["id"] for entry in answer.json()["entries"]] == ids


def test_a_question_that_finds_nothing_is_corrected_by_words_that_the_reader_may_see(
    site: Site, writer: Reader
) -> None:
    word = site.world.word()
    found = site.create(f"{word}.txt", f"the {word}ing valve".encode())
    site.world.catch_up()
    writer.search(f"{word}img valve")
    assert f"Did you mean {word}ing valve? 1 hit" in writer.text
    writer.follow(f"{word}ing valve")
    assert objects_of(writer)[0] == found
    assert "Did you mean" not in writer.text
    assert "Did you mean" not in writer.search(f'"{word}img valve"').text
    stranger = Reader(site, site.world.reader).search(f"{word}img valve")
    assert "Did you mean" not in stranger.text


def test_what_is_typed_is_completed_by_words_that_the_reader_may_see(site: Site, writer: Reader) -> None:
    word = site.world.word()
    site.create(f"{word}.txt", f"the {word}ing valve".encode())
    site.world.catch_up()
    stranger = Reader(site, site.world.reader)
    address, typed = f"{SEARCH}/suggestions", {"q": f"valve {word}i"}
    answer = writer.http.get(address, params=typed)
    assert answer.json() == {"completions": [{"text": f"valve {word}ing", "hits": 1}]}
    assert answer.headers["cache-control"] == "no-store"
    assert stranger.http.get(address, params=typed).json() == {"completions": []}
    assert writer.http.get(address).json() == {"completions": []}
    assert Reader(site).http.get(address, params=typed, follow_redirects=False).status_code == 303


# Reading


def test_an_object_is_shown_with_its_properties_and_its_marked_text_and_downloaded(site: Site, writer: Reader) -> None:
    word = site.world.word()
    content = f"Before. The {word} valves leak; a valve is {word}.\n\nAfter.".encode()
    object_id = site.create(f"{word} ä.txt", content, subject="repairs", keywords=["one", "two"])
    site.world.catch_up()
    writer.search(f"{word} valve", words="all").follow(f"{word} ä.txt")
    assert writer.marked == [word, "valves", "valve", word]
    for told in ("repairs", "one", "two", object_id, site.world.writer.id, "5 words are marked", "4 words are marked"):
        assert (told in writer.text) == (told != "5 words are marked"), told
    (link,) = (each for each in writer.links() if "/content" in each)
    answer = writer.http.get(link)
    assert answer.content == content
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["content-security-policy"] == "sandbox"
    part = writer.http.get(link, headers={"Range": "bytes=0-5"})
    assert (part.status_code, part.content) == (206, content[:6])
    assert writer.follow("Back to the hits").titles == [f"{word} ä.txt"]


def test_documents_like_the_one_that_is_shown_stand_beside_it(site: Site, writer: Reader) -> None:
    word, other = site.world.word(), site.world.word()
    site.create("like it", f"a {word}".encode(), title=f"Like {word} & co")
    site.create("first", f"the {word} {other}".encode())
    alone = site.create("alone", other.upper().encode(), title="Alone")
    site.world.catch_up()
    writer.search(f"{word} {other}", words="all").follow("first")
    assert writer.root.xpath("//section[h2='Similar documents']//a/text()") == [f"Like {word} & co", "Alone"]
    writer.follow("Alone")
    assert writer.path.startswith(f"{SEARCH}/objects/{alone}")
    assert writer.root.xpath("//section[h2='Similar documents']//a/text()") == ["first"]


def test_a_long_text_comes_in_parts_and_begins_with_the_one_that_matched(site: Site, writer: Reader) -> None:
    word = site.world.word()
    site.create("long", b"filler words " * 8000 + word.encode() + b" end " * 10)
    site.world.catch_up()
    writer.search(word).follow("long")
    assert "Part 3 of 3" in writer.text
    assert writer.marked == [word]
    writer.follow("Previous part")
    assert "Part 2 of 3" in writer.text
    assert "No word is marked here" in writer.text
    assert writer.http.get(f"{writer.path}&part=9").status_code == 400


def test_a_folder_is_shown_without_text_and_searched(site: Site, writer: Reader) -> None:
    word = site.world.word()
    cabinet = site.cabinet(word)
    site.world.catch_up()
    writer.search(word).follow(word)
    assert "Text" not in [heading.text_content() for heading in writer.root.iter("h2")]
    writer.follow("Search in this folder")
    assert dict(parameters(writer.path))["folder"] == cabinet
    assert "Nothing found" in writer.text


# Saved searches


def test_a_question_is_saved_opened_narrowed_and_removed(site: Site, writer: Reader) -> None:
    word = site.world.word()
    one = site.create(f"{word} one", b"x")
    site.create(f"{word} other", b"x" * 20_000)
    site.cabinet(word)
    site.world.catch_up()
    writer.search(word, type=site.type("document"))
    writer.send("Save", {"name": f"Mine {word}", "description": "for tests", "public": "yes"})
    assert "The search is saved" in writer.text
    assert len(writer.titles) == 2
    assert f"Saved search: Mine {word}" in writer.text
    search_id = dict(parameters(writer.path))["edited"]
    narrowed = writer.search(None, size="1-9999", saved=search_id)
    assert objects_of(narrowed) == [one]
    answer = site.http.post(
        site.search_address,
        content=shown_code(narrowed, "json").encode(),
        headers=site.bearer() | {"Content-Type": "application/json", "Accept": "application/json"},
    )
    assert [entry["id"] for entry in answer.json()["entries"]] == [one]
    assert len(site.feed(f"{site.repository}/saved-searches/{search_id}/execution").entries) == 2
    other = Reader(site, site.world.reader).open(f"{SEARCH}/saved")
    assert f"Mine {word}" in other.text
    assert f"Remove Mine {word}" not in other.answer.text
    other.open(SEARCH, saved=search_id)
    assert other.titles == []
    writer.open(f"{SEARCH}/saved")
    mark = writer.root.xpath("//input[@name='csrf']")[0].get("value")
    removal = {"csrf": mark, "action": "remove", "address": "", "search": search_id}
    other.open(f"{SEARCH}/saved")
    other_mark = other.root.xpath("//input[@name='csrf']")[0].get("value")
    assert other.http.post(f"{SEARCH}/saved", data=removal | {"csrf": other_mark}).status_code in {403, 404}
    writer.answer = writer.http.post(f"{SEARCH}/saved", data=removal)
    assert "The saved search is gone" in writer.text
    assert writer.http.get(SEARCH, params={"saved": search_id}).status_code == 404


def test_a_private_saved_search_of_somebody_else_is_none(site: Site, writer: Reader) -> None:
    word = site.world.word()
    writer.search(word).send("Save", {"name": f"secret {word}"})
    search_id = dict(parameters(writer.path))["edited"]
    other = Reader(site, site.world.reader)
    assert other.http.get(SEARCH, params={"saved": search_id}).status_code == 404
    assert word not in other.open(f"{SEARCH}/saved").text
    assert word not in other.open(SEARCH).text


def test_lists_of_saved_searches_are_read_outside_the_event_loop(
    writer: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list reads all that the caller may see, to order it. No other caller waits for that (decision 0031)."""
    threads, page = list[str](), saved_searches.saved_page

    def noted(*asked: Any) -> Any:
        threads.append(threading.current_thread().name.partition("_")[0])
        return page(*asked)

    monkeypatch.setattr(saved_searches, "saved_page", noted)
    for path, asked, status in (
        (SEARCH, {}, 200),
        (SEARCH, {"q": "pump", "page": 99_999}, 400),
        (f"{SEARCH}/saved", {}, 200),
    ):
        writer.open(path, asked, status=status)
    assert threads == ["long question"] * 3


# What a caller may not see


def test_what_a_caller_may_not_see_is_nowhere_on_the_page(site: Site) -> None:
    world = site.world
    word, secret, owner = world.word(), world.word(), world.person("writers", member=False)
    cabinet = site.http.post(
        f"{site.repository}/cabinets", json={"properties": {"object_name": secret}}, headers=site.bearer(owner)
    ).json()["properties"]["r_object_id"]
    hidden = site.create(f"{word} {secret}", f"{word} {secret}".encode(), person=owner)
    filed = site.http.post(
        f"{site.repository}/folders/{cabinet}/documents",
        json={"properties": {"object_name": f"{word} open", "acl_name": "public"}},
        headers=site.bearer(owner),
    ).json()["properties"]["r_object_id"]
    world.catch_up()
    reader = Reader(site, world.reader)
    pages = [
        reader.search(word).answer.text,
        reader.search(word, owner=owner.id, type=site.type("document"), size="1-9999").answer.text,
        reader.search(word, sort="name").answer.text,
        reader.open(f"{SEARCH}/objects/{filed}", q=word).answer.text,
    ]
    assert objects_of(reader.search(word)) == [filed]
    assert reader.values("type") == {site.type("document"): (1, False)}
    for page in pages:
        assert secret not in page
        assert hidden not in page
        assert cabinet not in page
    assert "Nothing found" in reader.search(secret).text
    assert reader.http.get(f"{SEARCH}/objects/{hidden}").status_code == 404
    assert reader.http.get(f"{SEARCH}/objects/{hidden}/content").status_code == 404
    nowhere = cabinet[:-1] + ("0" if cabinet[-1] != "0" else "1")
    hidden_folder, no_folder = (reader.search("", status=400, folder=folder).text for folder in (cabinet, nowhere))
    assert re.sub("[0-9a-f]{16}", "", hidden_folder) == re.sub("[0-9a-f]{16}", "", no_folder)


def test_who_may_browse_alone_reads_no_text(site: Site) -> None:
    world = site.world
    word, secret = world.word(), world.word()
    acl = f"browse-{word}"
    made = site.http.post(
        f"{site.repository}/acls",
        json={"name": acl, "permitted": [permitted(site, "world", "Browse"), permitted(site, "owner", "Delete")]},
        headers=site.bearer(),
    )
    assert made.status_code == 201, made.text
    object_id = site.create(f"{word} doc", f"{word} {secret}".encode(), acl_name=acl)
    world.catch_up()
    reader = Reader(site, world.reader).search(word)
    assert objects_of(reader) == [object_id]
    assert secret not in reader.answer.text
    reader.follow(f"{word} doc")
    assert "not read it" in reader.text
    assert secret not in reader.answer.text
    assert not [link for link in reader.links() if "/content" in link]
    assert reader.http.get(f"{SEARCH}/objects/{object_id}/content").status_code == 403


def test_markup_in_titles_texts_questions_and_values_is_text(site: Site, writer: Reader) -> None:
    word = site.world.word()
    site.create(
        f"{word} {EVIL}"[:255], f"{word} {EVIL}".encode(), title=f"{EVIL} {word}", subject=EVIL, keywords=[EVIL, EVIL]
    )
    site.create(f"{word} odd", a_content_type=EVIL)
    site.world.catch_up()
    writer.search(f"{word} {EVIL}").send("Save", {"name": f"{word} {EVIL}", "description": EVIL})
    pages = [writer.answer.text]
    pages.append(writer.search(f"{word} {EVIL}", type=EVIL, owner=EVIL, format=EVIL).answer.text)
    pages.append(writer.search(word).answer.text)
    assert EVIL in writer.values("format")
    pages.append(writer.follow(f"{EVIL} {word}").answer.text)
    pages += [writer.open(f"{SEARCH}/saved").answer.text, writer.open(SEARCH).answer.text]
    pages.append(Reader(site).search(EVIL).answer.text)
    pages.append(Reader(site).search(EVIL).sign_in(Person(EVIL, "x")).answer.text)
    for page in pages:
        assert "<script>" not in page
        assert "<img" not in page
        assert "49" not in re.findall(r"\{\{(.*?)\}\}", page)
        assert page.count("<script ") <= 1


def test_a_page_has_a_policy_under_which_its_own_script_alone_runs(site: Site, writer: Reader) -> None:
    writer.open(SEARCH)
    policy = writer.answer.headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    (script,) = writer.root.xpath("//script")
    assert not script.text
    answer = writer.http.get(script.get("src"))
    assert answer.headers["content-type"].startswith("text/javascript")
    assert writer.http.get(f"{SEARCH}/static/nothing.js").status_code == 404
    form = Reader(site).open(f"{SEARCH}/sign-in")
    assert "script-src" not in form.answer.headers["content-security-policy"]
    assert not form.root.xpath("//script")


# Several repositories, and none


def test_one_sign_in_opens_every_repository_that_admits_the_user(site: Site, world: World) -> None:
    name = f"second-{world.word()}"
    with world.repository_db.begin() as cx:
        repositories.add(cx, name, world.other_resource_id, "", world.clock())
        repositories.add(cx, f"{name}-too", world.resource_id, "", world.clock())
    try:
        world.catch_up(name)
        world.catch_up(f"{name}-too")
        person, stranger = world.person(), world.person()
        world.admit(person, world.other_resource_id)
        reader = Reader(site, person)
        shown = [option.text for option in reader.open(SEARCH).root.xpath("//select[@name='in']/option")]
        assert {name, f"{name}-too", world.repository} <= set(shown)
        assert "Nothing found" in reader.search("x", {"in": name}).text
        assert f"Search in {world.repository}" in reader.text
        other = Reader(site, stranger)
        shown = [option.text for option in other.open(SEARCH).root.xpath("//select[@name='in']/option")]
        assert name not in shown
        assert f"{name}-too" in shown
        assert other.http.get(SEARCH, params={"q": "x", "in": name}).status_code == 404
    finally:
        with world.repository_db.begin() as cx:
            for one in (name, f"{name}-too"):
                repositories.remove(cx, repositories.find(cx, one))


def test_a_repository_is_searched_by_its_name_however_many_come_before_it(world: World, loop: Loop) -> None:
    first, guarded = f"{world.repository}-second", f"{world.repository}-third"
    with world.repository_db.begin() as cx:
        repositories.add(cx, first, world.resource_id, "", world.clock())
        repositories.add(cx, guarded, world.other_resource_id, "", world.clock())
    try:
        world.catch_up(first)
        with closing(Site(world, "neutral", loop, "repository.max_searched_repositories=1")) as site:
            reader = Reader(site, world.person())
            assert f"Search {world.repository}" in reader.text
            options = reader.search("x", {"in": first}).root.xpath("//select[@name='in']/option")
            assert [option.text for option in options if option.get("selected") is not None] == [first]
            assert f"Search in {world.repository}" in reader.text
            # A repository of another guard looks like one that does not exist.
            hidden, missing = (reader.search("x", {"in": name}, status=404).text for name in (guarded, "nothing"))
            assert hidden == missing
    finally:
        with world.repository_db.begin() as cx:
            for name in (first, guarded):
                repositories.remove(cx, repositories.find(cx, name))


def test_the_page_can_be_turned_off_and_the_front_page_has_its_box_only_where_it_is_on(
    world: World, loop: Loop
) -> None:
    with (
        closing(Site(world, "neutral", loop)) as on,
        closing(Site(world, "neutral", loop, "repository.search_page=false")) as off,
    ):
        assert 'action="https://muniment.test/search"' in on.http.get("/").text
        assert 'role="search"' not in off.http.get("/").text
        assert off.http.get(SEARCH).status_code == 404
        assert "/search" in on.http.get("/openapi.json").json()["paths"]
        assert "/search" not in off.http.get("/openapi.json").json()["paths"]


def test_a_client_that_is_missing_is_no_wrong_password(world: World, loop: Loop) -> None:
    with closing(Site(world, "neutral", loop, "repository.search_page_client=nobody")) as site:
        reader = Reader(site).open(f"{SEARCH}/sign-in")
        answer = reader.send("Sign in", {"username": world.writer.id, "password": world.writer.password})
        assert answer.status_code == 503
        assert "The server is busy" in answer.text


def test_membership_in_a_group_that_ends_hides_at_once(site: Site, world: World) -> None:
    word, person = world.word(), world.person()
    world.group(f"g{word}", person)
    acl = f"group-{word}"
    entries_of_acl = [{"accessor": f"g{word}@demo", "basic-permission": "Read"}, permitted(site, "owner", "Delete")]
    body = {"name": acl, "permitted": entries_of_acl}
    assert site.http.post(f"{site.repository}/acls", json=body, headers=site.bearer()).status_code == 201
    site.create(f"{word} doc", b"x", acl_name=acl)
    world.catch_up()
    reader = Reader(site, person).search(word)
    assert reader.titles == [f"{word} doc"]
    with world.directory_db.begin() as cx:
        group = entries.find_group(cx, world.names, f"g{word}@demo")
        memberships.remove_members(cx, group, [world.entry(person)])
    assert reader.search(word).titles == []

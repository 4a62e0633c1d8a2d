"""Whatever a stranger sends: the interface's own error shape with a sentence, never a 500, nothing half-written."""

import itertools
import random
import re
import uuid
from collections.abc import Callable

import httpx
import pytest
from lxml import etree

from tests.house.test_docs import routes
from tests.scenes import Site, begins, between, fulltext, one_of

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
JSON = {"Content-Type": "application/json"}
XML = {"Content-Type": "application/xml"}


def is_oauth(answer: httpx.Response) -> None:
    """The shape of RFC 6749 5.2."""
    assert 400 <= answer.status_code < 500, (answer.status_code, answer.text)
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Pragma"] == "no-cache"
    said = answer.json()
    assert set(said) <= {"error", "error_description", "error_uri"}
    assert said["error"].replace("_", "").isalpha()
    assert said["error_description"].endswith(".")
    assert all(" " <= c <= "~" and c not in '"\\' for c in said["error_description"]), "RFC 6749 5.2 allows these only"


def is_directory(answer: httpx.Response) -> None:
    """The shape of the directory's REST dialect."""
    assert 400 <= answer.status_code < 500, (answer.status_code, answer.text)
    said = answer.json()
    assert set(said) == {"status", "error", "errorDetails"}
    assert said["status"] == answer.status_code
    assert said["error"].endswith(".")


def is_repository(answer: httpx.Response, site: Site) -> str:
    """The shape of the repository's error document, in XML or JSON; gives the sentence."""
    assert 400 <= answer.status_code < 500, (answer.status_code, answer.text)
    names = ("status", "code", "message", "details", "id")
    if "xml" in answer.headers["Content-Type"]:
        root = etree.fromstring(answer.content)
        assert root.tag == f"{site.vocab}error"
        said = {name: root.findtext(f"{site.vocab}{name}") or "" for name in names}
    else:
        body = answer.json()
        assert set(body) == set(names)
        said = {name: str(body[name]) for name in names}
    assert said["status"] == str(answer.status_code)
    assert said["code"].startswith("E_")
    assert said["message"].endswith((".", "?"))
    assert str(uuid.UUID(said["id"])) == said["id"]
    return said["message"]


# Every address


def test_two_authorization_headers_are_refused_everywhere_before_anything_is_decided(site: Site) -> None:
    """A proxy may have checked the one where this server would believe the other."""
    good = site.bearer()["Authorization"]
    prefixes = {"/dirws": site.directory, "/rest": f"/{site.names.prefix}"}
    paths = {re.sub("^/(dirws|rest)", lambda found: prefixes[found[0]], route.path) for route in routes()}
    pairs = itertools.cycle(((good, "Bearer x"), ("Basic eDp4", good), (good, good)))
    for path in sorted(paths | {"/", "/health/ready", "/nothing"}):
        address = re.sub(r"\{[a-z_]+(:[a-z]+)?\}", "x", path.replace("{repository}", site.world.repository))
        for method in ("GET", "POST", "DELETE", "PUT", "OPTIONS"):
            headers = [("Authorization", value) for value in next(pairs)]
            answer = site.http.request(method, address, headers=headers)
            assert answer.status_code == 400, (method, address, answer.text)
            assert "2 Authorization headers" in answer.text
            if path.startswith(prefixes["/rest"]):
                is_repository(answer, site)
            elif path == site.login or path.startswith(f"{site.directory}/oauth2/"):
                if "html" not in answer.headers["Content-Type"] and "/.well-known/" not in path:
                    is_oauth(answer)
            elif path.startswith(site.directory) and "html" not in answer.headers["Content-Type"]:
                is_directory(answer)


# The token endpoint


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"&&&",
        b"=",
        b"grant_type=password",
        b"grant_type=password&grant_type=refresh_token",
        b"grant_type=password&client_id=a&client_id=a&username=a&password=b&scope=c",
        b"grant_type=%zz",
        b"grant_type=%",
        b"grant_type=\xff\xfe",
        b"grant_type=%ff",
        b"grant_type=a%00b",
        b"a&" * 2000,
        b"username=" + b"x" * 100_000,
        b'{"grant_type": "password"}',
        b"grant_type=refresh_token&client_id=demo-client&refresh_token=" + b"%F0%9F%97%84" * 20,
        b"grant_type=password&client_id=%F0%9F%97%84&username=x&password=y&scope=resource:z",
        b"grant_type=password&client_id=demo-client&username=@&password=&scope=resource:Demo+Files",
        b"grant_type=password&client_id=demo-client&username=a@b@c&password=x&scope=resource:%ED%A0%80",
    ],
    ids=range(18),
)
def test_a_bad_token_request_is_refused_as_oauth_says(site: Site, body: bytes) -> None:
    is_oauth(site.http.post(site.login, content=body, headers=FORM))


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "multipart/form-data; boundary=x", "", "x/y; z"])
def test_a_token_request_of_another_media_type_is_refused(site: Site, kind: str) -> None:
    answer = site.http.post(site.login, content=b"grant_type=password", headers={"Content-Type": kind})
    is_oauth(answer)
    assert answer.json()["error"] == "invalid_request"


def test_an_oversized_password_is_refused_before_it_is_hashed(site: Site) -> None:
    is_oauth(site.ask_token(site.world.person(), password="x" * 50_000))


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_a_method_the_token_endpoint_does_not_know_is_405(site: Site, method: str) -> None:
    answer = site.http.request(method, site.login)
    assert answer.status_code == 405
    assert "POST" in answer.headers["Allow"]
    is_oauth(answer)


@pytest.mark.parametrize(
    "header", ["Basic", "Basic !!!", "Basic eA==", "Basic " + "A" * 9000, "Basic //79OnA=", "Basic é"]
)
def test_a_broken_basic_header_is_an_invalid_client(site: Site, header: str) -> None:
    answer = site.http.post(
        site.login,
        data={"grant_type": "refresh_token", "refresh_token": "x"},
        headers={b"Authorization": header.encode("latin-1")},
    )
    is_oauth(answer)
    assert answer.json()["error"] in {"invalid_client", "invalid_request"}


def test_a_client_that_authenticates_in_two_ways_is_refused(site: Site) -> None:
    answer = site.http.post(
        site.login,
        data={
            "grant_type": "refresh_token",
            "refresh_token": "x",
            "client_id": site.world.confidential_id,
            "client_secret": site.world.confidential_secret,
        },
        auth=(site.world.confidential_id, site.world.confidential_secret),
    )
    is_oauth(answer)


# tokeninfo, revocation, activation


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b'{"token": 1, "resource_id": 2}',
        b'{"token": null, "resource_id": null}',
        b'{"token": "x"}',
        b'{"resource_id": "x"}',
        b'\xff{"token": "x", "resource_id": "y"}',
        b'{"token": "\\ud800", "resource_id": "\\ud800"}',
        b"[" * 100_000,
        b'{"token": "' + b"x" * 200_000 + b'", "resource_id": ""}',
        b'{"token": "\\u0000", "resource_id": "\\u0000"}',
        b"grant_type=password",
    ],
    ids=range(14),
)
def test_a_bad_tokeninfo_request_is_refused_in_the_directorys_shape(site: Site, body: bytes) -> None:
    answer = site.http.post(f"{site.oauth}/tokeninfo", content=body, headers=JSON)
    is_directory(answer)
    assert answer.status_code in {400, 401, 413}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/authentication/oauth/tokeninfo", 405),
        ("PUT", "/v1/authentication/oauth/tokeninfo", 405),
        ("POST", "/v1/authentication/oauth/some-token", 405),
        ("GET", "/v1/authentication/oauth/some-token", 405),
        ("GET", "/rest/resources/x/activate", 405),
        ("GET", "/nowhere", 404),
        ("POST", "/v1/authentication/oauth/", 404),
        ("DELETE", "/v1/authentication/oauth/a/b", 404),
        ("GET", "/rest/%2e%2e/%2e%2e/etc/passwd", 404),
        ("POST", "/rest/resources//activate", 404),
    ],
)
def test_a_wrong_method_or_address_is_refused_in_the_directorys_shape(
    site: Site, method: str, path: str, status: int
) -> None:
    answer = site.http.request(method, site.directory + path)
    is_directory(answer)
    assert answer.status_code == status
    if status == 405:
        assert answer.headers["Allow"]


@pytest.mark.parametrize("password", [None, "wrong"])
@pytest.mark.parametrize("path", ["/login", "/oauth2/token"])
def test_an_address_with_a_slash_in_a_name_is_another_one(site: Site, path: str, password: str | None) -> None:
    person = site.world.person()
    form = {"grant_type": "password", "username": person.id, "client_id": site.world.client_id}
    form |= {"password": password or person.password, "scope": site.world.scope}
    beginning, _, name = (site.directory + path).rpartition("/")
    answer = site.http.post(f"{beginning}%2F{name}", data=form)
    assert answer.status_code == 404
    assert "access_token" not in answer.text


def test_a_remembered_answer_has_its_own_address_alone(site: Site) -> None:
    question = {"token": site.issue(site.world.person())["access_token"], "resource_id": site.world.resource_id}
    assert [
        site.http.post(f"{site.oauth}{slash}tokeninfo", json=question).status_code for slash in ("/", "/", "%2F")
    ] == [*(200, 200, 404)]


@pytest.mark.parametrize("token", ["%00", "%FF%FE", "a" * 7000, "%2F..%2F..%2Fetc", "x%0d%0aSet-Cookie:a=b", "*", "'"])
def test_a_garbage_token_in_the_address_is_401(site: Site, token: str) -> None:
    answer = site.http.delete(f"{site.oauth}/{token}")
    is_directory(answer)
    assert answer.status_code in {401, 404}
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("resource_id", ["x", "%00", "%FF", "..%2F..", "0" * 5000, str(uuid.UUID(int=0))])
def test_activating_what_is_no_resource_is_refused(site: Site, resource_id: str) -> None:
    is_directory(site.activate(resource_id, site.administrator()))


# The repository


@pytest.mark.parametrize("accept", ["application/xml", "application/json", "*/*"])
def test_the_error_document_is_written_as_the_caller_accepts(site: Site, accept: str) -> None:
    answer = site.http.get(f"{site.repository}/objects/0900000000000000", headers=site.bearer() | {"Accept": accept})
    assert answer.status_code == 404
    is_repository(answer, site)
    if accept == "application/json":
        assert answer.json()["status"] == 404
    if accept == "application/xml":
        assert answer.content.startswith(b"<")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/repositories/nowhere", 404),
        ("/repositories/nowhere/search?q=x", 404),
        ("/repositories/%00/search?q=x", 404),
        ("/repositories/{demo}/nothing", 404),
        ("/repositories/{demo}/objects/x", 404),
        ("/repositories/{demo}/objects/%00", 404),
        ("/repositories/{demo}/objects/09ffffffffffffff", 404),
        ("/repositories/{demo}/objects/090000010000000g/contents", 404),
        ("/repositories/{demo}/types/nothing", 404),
        ("/repositories/{demo}/acls/nothing", 404),
        ("/repositories/{demo}/acls/%00", 404),
        ("/repositories/{demo}/types/%00", 404),
        ("/elsewhere", 404),
    ],
)
def test_what_is_not_there_is_404_in_the_repositorys_shape(site: Site, path: str, status: int) -> None:
    address = f"/{site.names.prefix}{path.format(demo=site.world.repository)}"
    answer = site.http.get(address, headers=site.bearer())
    assert answer.status_code == status
    is_repository(answer, site)


@pytest.mark.parametrize(
    ("method", "path"), [("PUT", ""), ("DELETE", "/search"), ("PATCH", "/objects/x"), ("PUT", "/objects"), ("POST", "")]
)
def test_a_method_the_address_does_not_know_is_405(site: Site, method: str, path: str) -> None:
    answer = site.http.request(method, site.repository + path, headers=site.bearer())
    assert answer.status_code == 405, answer.text
    assert answer.headers["Allow"]
    is_repository(answer, site)


@pytest.mark.parametrize(
    "query",
    [
        "page=-1",
        "page=1000000000",
        "page=x",
        "page=1&page=2",
        "page=99999999999999999999999999",
        "page=1.5",
        "items-per-page=0",
        "items-per-page=-5",
        "items-per-page=x",
        "include-total=perhaps",
        "include-total=true&include-total=false",
        "include-total=%ff",
    ],
)
def test_a_bad_parameter_of_a_search_is_400_and_named(site: Site, query: str) -> None:
    """failures B13."""
    name = query.partition("=")[0]
    posted = site.http.post(
        f"{site.search_address}?{query}", content=site.aql(fulltext("x")), headers=XML | site.bearer()
    )
    got = site.http.get(f"{site.search_address}?q=x&{query}", headers=site.bearer())
    for answer in (posted, got):
        assert answer.status_code == 400, (query, answer.status_code)
        sentence = is_repository(answer, site)
        assert name in sentence.lower() or "UTF-8" in sentence


@pytest.mark.parametrize(
    "query",
    [
        "locations=/no-such-folder",
        "sort=no_such_property",
        "sort=title,title",
        "facet=no_such_property",
        "facet=r_creation_date&timezone=Nowhere/City",
        "cursor=not-a-cursor",
    ],
)
def test_a_bad_value_of_a_parameter_of_the_template_is_refused_by_name(site: Site, query: str) -> None:
    answer = site.http.get(f"{site.search_address}?q=x&{query}", headers=site.bearer())
    assert answer.status_code == (404 if "cursor" in query else 400)
    name, _, value = query.split("&")[-1].partition("=")
    sentence = is_repository(answer, site)
    assert name.rstrip("s") in sentence or value.partition(",")[0].strip("/") in sentence


def test_an_unknown_object_type_is_named(site: Site) -> None:
    answer = site.http.get(f"{site.search_address}?q=x&object-type=spaceship", headers=site.bearer())
    assert answer.status_code == 400
    assert "spaceship" in is_repository(answer, site)


def deep(site: Site) -> str:
    inner = fulltext("x")
    for _ in range(200):
        inner = f'<expression-set operator="AND"><expressions>{inner}</expressions></expression-set>'
    return site.aql(inner)


DOCUMENTS: dict[str, Callable[[Site], str | bytes]] = {
    "empty": lambda _site: "",
    "no XML": lambda _site: "fulltext",
    "truncated": lambda site: site.aql(fulltext("x"))[:-9],
    "a doctype": lambda site: '<!DOCTYPE search [<!ENTITY a "b">]>' + site.aql(fulltext("&a;")),
    "an outside entity": lambda site: (
        '<!DOCTYPE s [<!ENTITY a SYSTEM "file:///etc/passwd">]>' + site.aql("<fulltext>&a;</fulltext>")
    ),
    "a billion laughs": lambda site: (
        '<!DOCTYPE s [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
        + site.aql("<fulltext>&b;</fulltext>")
    ),
    "inclusion of a file": lambda site: site.aql(
        '<i:include xmlns:i="http://www.w3.org/2001/XInclude" href="/etc/passwd"/>'
    ),
    "an attribute of ten megabytes": lambda site: site.aql(f'<fulltext fuzzy="{"x" * 10_000_000}">x</fulltext>'),
    "a hundred thousand deep": lambda site: site.aql("<expression-set>" * 100_000 + "</expression-set>" * 100_000),
    "too deep": deep,
    "too many clauses": lambda site: site.aql(*[fulltext("x")] * 5000),
    "too many values": lambda site: site.aql(one_of("owner_name", *["x"] * 5000)),
    "too many attributes": lambda site: site.aql(
        "<fulltext " + " ".join(f'a{n}="1"' for n in range(5000)) + ">x</fulltext>"
    ),
    "an unknown element": lambda site: site.aql("<nothing/>"),
    "an unknown attribute": lambda site: site.aql('<fulltext nothing="1">x</fulltext>'),
    "an unknown operator": lambda site: site.aql('<property name="object_name" operator="SOUNDS_LIKE">x</property>'),
    "no operator": lambda site: site.aql('<property name="object_name">x</property>'),
    "no name": lambda site: site.aql('<property operator="BEGINS_WITH">x</property>'),
    "an unknown set operator": lambda site: site.aql(fulltext("x"), operator="XOR"),
    "an unknown property": lambda site: site.aql(begins("no_such_property", "x")),
    "an unknown type": lambda site: site.aql(fulltext("x"), types=("spaceship",)),
    "an empty type": lambda site: site.aql(fulltext("x")).replace(site.type("document"), ""),
    "a word for a number": lambda site: site.aql(between("r_full_content_size", "small", "big")),
    "a number too large": lambda site: site.aql(between("r_full_content_size", "0", "9" * 400)),
    "not a date": lambda site: site.aql(between("r_creation_date", "yesterday", "tomorrow")),
    "begins with a number": lambda site: site.aql(begins("r_full_content_size", "1")),
    "a range without an end": lambda site: site.aql(
        '<property-range name="r_full_content_size" operator="BETWEEN"><from>1</from></property-range>'
    ),
    "a list without values": lambda site: site.aql(one_of("owner_name")),
    "two roots": lambda site: site.aql(fulltext("x")) * 2,
    "bad UTF-8": lambda site: site.aql(fulltext("x")).encode().replace(b">x<", b">\xff<"),
    "a wrong encoding": lambda site: '<?xml version="1.0" encoding="no-such"?>' + site.aql(fulltext("x")),
    "a NUL": lambda site: site.aql(fulltext("x")).replace(">x<", ">\x00<"),
    "a control character": lambda site: site.aql(fulltext("x")).replace(">x<", ">&#1;<"),
    "an undeclared prefix": lambda site: site.aql("<v:fulltext>x</v:fulltext>"),
    "text between elements": lambda site: site.aql("astray", fulltext("x")),
    "oversized": lambda site: site.aql(fulltext("x" * 400_000)),
}

TOO_LARGE = {"oversized", "an attribute of ten megabytes", "a hundred thousand deep"}


NAMED = {
    "empty": "is empty",
    "an unknown property": "'no_such_property'",
    "an unknown type": "spaceship'",
    "a word for a number": "'r_full_content_size'",
    "a number too large": "'r_full_content_size'",
    "not a date": "'r_creation_date'",
    "begins with a number": "'r_full_content_size'",
}
"""What is well-formed but cannot be asked here is refused by its name."""


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_bad_search_document_is_refused_with_the_place(site: Site, name: str) -> None:
    """failures B7, failures B8."""
    answer = site.post_search(DOCUMENTS[name](site))
    sentence = is_repository(answer, site)
    if name in TOO_LARGE:
        assert answer.status_code == 413
    else:
        assert answer.status_code == 400, answer.status_code
        assert "line" in sentence or NAMED.get(name, "line") in sentence, sentence


@pytest.mark.parametrize(
    "q", ["", " ", '"', '"a', "(", "((((", ")", "a AND", "OR", "NOT", "*", "a:b", "12:30", "-", "\\"]
)
def test_stray_punctuation_in_keywords_is_harmless(site: Site, q: str) -> None:
    assert site.http.get(site.search_address, params={"q": q}, headers=site.bearer()).status_code in {200, 400}
    if q.strip():
        assert site.post_search(site.aql(fulltext(q))).status_code == 200


@pytest.mark.parametrize(
    "q", ["(" * 500 + "x" + ")" * 500, "x " * 5000, "NOT " * 1000 + "x", "a*" * 3000, "\ufffe\u0000"]
)
def test_runaway_keywords_end_in_a_sentence(site: Site, q: str) -> None:
    """failures B7."""
    answer = site.http.get(site.search_address, params={"q": q}, headers=site.bearer())
    if answer.status_code != 200:
        is_repository(answer, site)


OBJECTS: dict[str, tuple[dict[str, str], bytes, set[int]]] = {
    "empty": (JSON, b"", {400}),
    "truncated": (JSON, b'{"properties": {"object_name": "x"', {400}),
    "an array": (JSON, b"[]", {400}),
    "properties of a wrong kind": (JSON, b'{"properties": 1}', {400}),
    "an unknown type": (JSON, b'{"properties": {"r_object_type": "spaceship", "object_name": "x"}}', {400}),
    "a type that is no text": (JSON, b'{"properties": {"object_name": "x", "r_object_type": 5}}', {400}),
    "a list of types": (JSON, b'{"properties": {"object_name": "x", "r_object_type": ["document", "x"]}}', {400}),
    "an unknown property": (JSON, b'{"properties": {"object_name": "x", "colour": "red"}}', {400}),
    "a wrong value": (JSON, b'{"properties": {"object_name": {"a": 1}}}', {400}),
    "a list for one": (JSON, b'{"properties": {"object_name": ["x", "y"]}}', {400}),
    "an owner": (JSON, b'{"properties": {"object_name": "x", "owner_name": "reader@demo"}}', {400, 403}),
    "a system property": (JSON, b'{"properties": {"object_name": "x", "r_object_id": "0900000100000001"}}', {400, 403}),
    "a name too long": (JSON, b'{"properties": {"object_name": "' + b"x" * 70_000 + b'"}}', {400}),
    "oversized": (JSON, b'{"properties": {"title": "' + b"x" * 1_000_000 + b'"}}', {413}),
    "bad UTF-8": (JSON, b'{"properties": {"object_name": "\xff"}}', {400}),
    "a NUL in a name": (JSON, b'{"properties": {"object_name": "a\\u0000b"}}', {400}),
    "a NUL in a property's name": (JSON, b'{"properties": {"object_name": "x", "a\\u0000b": "c"}}', {400}),
    "a NUL in the type": (JSON, b'{"properties": {"object_name": "x", "r_object_type": "a\\u0000b"}}', {400}),
    "a NUL in the ACL": (JSON, b'{"properties": {"object_name": "x", "acl_name": "a\\u0000b"}}', {400}),
    "a lone surrogate": (JSON, b'{"properties": {"object_name": "\\ud800"}}', {400}),
    "deep": (JSON, b'{"properties": ' + b"[" * 50_000, {400}),
    "bad XML": (XML, b"<document>", {400}),
    "XML with a doctype": (XML, b'<!DOCTYPE a [<!ENTITY b "c">]><document>&b;</document>', {400}),
    "broken multipart": ({"Content-Type": "multipart/form-data; boundary=x"}, b"--x\r\nnothing", {400}),
    "multipart without boundary": ({"Content-Type": "multipart/form-data"}, b"--x--", {400}),
    "empty multipart": ({"Content-Type": "multipart/form-data; boundary=x"}, b"--x--\r\n", {400}),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_a_bad_object_is_refused_and_nothing_is_kept(site: Site, name: str) -> None:
    headers, body, statuses = OBJECTS[name]

    def kept() -> int:
        answer = site.http.get(f"{site.repository}/cabinets", headers=site.bearer())
        with site.world.repository_db.read() as cx:
            count: int = cx.exec_driver_sql("SELECT count(*) FROM changes").scalar_one()
        assert answer.status_code == 200
        return count

    before = kept()
    answer = site.http.post(f"{site.repository}/objects", content=body, headers=headers | site.bearer())
    is_repository(answer, site)
    assert answer.status_code in statuses, answer.text
    assert kept() == before


@pytest.mark.parametrize(
    ("address", "body"),
    [
        ("{oauth}/tokeninfo", b'{"token": "a", "resource_id": "b", "token": "c"}'),
        ("{repository}/objects", b'{"properties": {"object_name": "x", "object_name": "y"}}'),
        ("{repository}/acls", b'{"name": "x", "name": "y", "permitted": []}'),
    ],
)
def test_json_that_says_something_twice_is_refused(site: Site, address: str, body: bytes) -> None:
    where = address.format(oauth=site.oauth, repository=site.repository)
    answer = site.http.post(where, content=body, headers=JSON | site.bearer())
    assert answer.status_code == 400
    assert "repeats the key" in answer.text


@pytest.mark.parametrize("body", [b"", b" \n"])
@pytest.mark.parametrize(
    ("address", "what", "json", "xml"),
    [
        ("{oauth}/tokeninfo", "body", "a JSON object", None),
        ("{repository}/objects", "body", "a JSON object", "an XML document"),
        ("{repository}/acls", "body", "a JSON object", "an XML document"),
        ("{repository}/search", "search document", "a JSON object", "the XML element 'search'"),
    ],
)
def test_an_empty_body_is_called_empty(
    site: Site, address: str, what: str, json: str, xml: str | None, body: bytes
) -> None:
    where = address.format(oauth=site.oauth, repository=site.repository)
    for kind, held in ((JSON, json), (XML, xml)):
        if held is not None:
            answer = site.http.post(where, content=body, headers={**kind, **site.bearer()})
            assert answer.status_code == 400
            assert f"The {what} is empty: it must hold {held}." in answer.text.replace("&apos;", "'")


def test_an_empty_part_of_metadata_is_called_empty(site: Site) -> None:
    parts = {"metadata": (None, b" ", "application/json"), "content": ("a.txt", b"x", "text/plain")}
    answer = site.http.post(f"{site.repository}/objects", files=parts, headers=site.bearer())
    assert answer.status_code == 400
    assert "The part with the object's metadata is empty" in is_repository(answer, site)


def test_content_for_what_is_not_there_is_404(site: Site) -> None:
    answer = site.http.post(
        f"{site.repository}/objects/0900000100ffffff/contents",
        content=b"x",
        headers=site.bearer() | {"Content-Type": "a/b"},
    )
    assert answer.status_code == 404
    is_repository(answer, site)


@pytest.mark.parametrize(
    "given", ["bytes=5-2", "bytes=x", "lines=1-2", "bytes=100-", "bytes=-0", "bytes=0-1,3-4", "bytes="]
)
def test_a_range_that_cannot_be_met_is_416_or_ignored(site: Site, given: str) -> None:
    made = site.create("ranged", b"0123456789")
    answer = site.http.get(f"{site.repository}/objects/{made}/content-media", headers=site.bearer() | {"Range": given})
    assert answer.status_code in {200, 206, 416}
    if answer.status_code == 200:
        assert answer.content == b"0123456789"


def test_random_bytes_anywhere_never_make_a_500(site: Site) -> None:
    chance = random.Random(7)
    addresses = (
        ("POST", site.login, FORM),
        ("POST", f"{site.oauth}/tokeninfo", JSON),
        ("POST", site.search_address, XML),
        ("POST", f"{site.repository}/objects", JSON),
        ("POST", f"{site.repository}/acls", JSON),
        ("POST", f"{site.repository}/cabinets", XML),
    )
    good = (
        b"grant_type=password&client_id=demo-client&scope=resource:a",
        site.aql(fulltext("x")).encode(),
        b'{"token": "x"}',
    )
    for _ in range(120):
        method, address, headers = chance.choice(addresses)
        body = bytearray(chance.choice(good))
        for _ in range(chance.randrange(1, 8)):
            body[chance.randrange(len(body))] = chance.randrange(256)
        answer = site.http.request(method, address, content=bytes(body), headers=headers | site.bearer())
        assert answer.status_code < 500, (address, bytes(body), answer.text)

"""ours 9: how a caller of the repository says who they are, and what ends that."""

import base64
import hmac
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import msgspec
import pytest

from muniment.directory.administration import decisions as administration
from muniment.directory.console import frame
from muniment.directory.entries import resources
from muniment.directory.oauth import sessions
from muniment.directory.sign_in import tickets
from muniment.directory.sign_in.passwords import PasswordGate
from muniment.repository.store import repositories
from tests.office import page_ticket
from tests.scenes import Loop, Person, Site
from tests.waiting import until


def basic(person: Person, password: str | None = None, name: str = "") -> dict[str, str]:
    """Write an Authorization header with a name and a password."""
    text = f"{name or person.id}:{person.password if password is None else password}"
    return {"Authorization": "Basic " + base64.b64encode(text.encode()).decode()}


def status(site: Site, headers: dict[str, str], path: str = "/types", method: str = "GET", **more: Any) -> int:
    return site.http.request(method, f"{site.repository}{path}", headers=headers, **more).status_code


def decide(site: Site, decision: Callable[..., Any], *args: Any) -> None:
    with site.world.directory_db.begin() as cx:
        decision(cx, *args)


def living(site: Site, person: Person) -> int:
    """Count the person's grants."""
    with site.world.directory_db.read() as cx:
        found = sessions.of_user(cx, site.world.entry(person), site.world.clock())
    return sum(session.kind == "grant" for session in found)


def ticket(site: Site, person: Person, resource_id: str = "") -> str:
    with site.world.directory_db.begin() as cx:
        user = site.world.entry(person).id
        return page_ticket(cx, site.directory_names, user, resource_id or site.world.resource_id, site.world.clock())


def ticket_header(site: Site) -> str:
    return site.directory_names.ticket_cookie or "Muniment-Ticket"


def cookie(site: Site, value: str) -> dict[str, str]:
    return {"Cookie": f"{site.directory_names.ticket_cookie or '__Host-muniment_ticket'}={value}"}


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """The hashes against which the password gate was asked to check."""
    asked: list[str | None] = []
    check = PasswordGate.check

    def counted(self: PasswordGate, stored: str | None, *more: Any) -> Any:
        asked.append(stored)
        return check(self, stored, *more)

    monkeypatch.setattr(PasswordGate, "check", counted)
    return asked


@pytest.fixture
def lonely(site: Site, loop: Loop) -> Iterator[Site]:
    """A site whose 401 offers tokens alone."""
    with closing(Site(site.world, site.kind, loop, "repository.basic_client=")) as served:
        yield served


# HTTP Basic


def test_a_name_and_password_open_the_repository(site: Site) -> None:
    person = site.world.person()
    assert status(site, basic(person)) == 200
    made = site.http.post(
        f"{site.repository}/objects", json={"properties": {"object_name": "by Basic"}}, headers=basic(person)
    )
    assert made.status_code == 201
    assert made.json()["properties"]["owner_name"] == person.id


APP, OTHER = "https://app.example.org", "https://other.example.org"
OWN = "https://muniment.test"


@pytest.mark.parametrize(
    ("sent", "is_taken"),
    [
        ({}, True),
        ({"Origin": OWN}, True),
        ({"Origin": f"{OWN}:443", "Referer": OTHER}, True),
        ({"Origin": APP}, True),
        ({"Origin": APP, "Sec-Fetch-Site": "cross-site"}, True),
        ({"Origin": "https://by-another-name.test", "Sec-Fetch-Site": "same-origin"}, True),
        ({"Sec-Fetch-Site": "none"}, True),
        ({"Origin": OTHER}, False),
        ({"Origin": "null"}, False),
        ({"Origin": "http://muniment.test"}, False),
        ({"Origin": f"{OWN}:8443"}, False),
        ({"Origin": f"{OWN}.evil.example"}, False),
        ({"Origin": "https://[::"}, False),
        ({"Origin": ""}, False),
        ({"Sec-Fetch-Site": "cross-site"}, False),
        ({"Origin": OTHER, "Sec-Fetch-Site": "same-site"}, False),
        ({"Origin": OWN, "Sec-Fetch-Site": "cross-site"}, False),
        ({"Sec-Fetch-Site": "something-new"}, False),
    ],
)
def test_a_page_of_another_site_writes_nothing_by_basic(
    site: Site, origins: Site, sent: dict[str, str], is_taken: bool
) -> None:
    """A browser sends a name and password that it remembers with every form, also with another site's."""
    address, form = f"{origins.repository}/objects?object-name=x", sent | {"Content-Type": "text/plain"}
    answer = origins.http.post(address, content=b"a=b", headers=basic(site.world.writer) | form)
    assert answer.status_code == (201 if is_taken else 403), answer.text
    assert origins.http.get(origins.repository, headers=basic(site.world.writer) | sent).status_code == 200
    token = origins.http.post(address, content=b"a=b", headers=origins.bearer() | form)
    assert token.status_code == 201, "a page cannot make a browser send a token"


def test_every_write_by_basic_asks_where_it_comes_from(site: Site, checks: list[str | None]) -> None:
    headers = basic(site.world.person()) | {"Origin": OTHER, "Content-Type": "application/json"}
    for method, path in (
        *(("POST", "/objects"), ("DELETE", "/objects/0900000000000000"), ("PUT", "/objects/0900000000000000/lock")),
        *(("POST", "/batches"), ("POST", "/search"), ("POST", "/users"), ("POST", "/acls"), ("POST", "")),
    ):
        answer = site.http.request(method, f"{site.repository}{path}", headers=headers, content=b"{}")
        assert answer.status_code in (403, 405), (path, answer.text)
    assert checks == [], "no other site tries passwords"


@pytest.fixture
def origins(site: Site, loop: Loop) -> Iterator[Site]:
    """A site with another site's page among its origins, and a star, which is no site."""
    with closing(Site(site.world, site.kind, loop, f"repository.cors_origins={APP},*")) as served:
        yield served


def test_many_requests_cost_one_password_check_and_one_grant(site: Site, checks: list[str | None]) -> None:
    person = site.world.person()
    for _ in range(50):
        assert status(site, basic(person)) == 200
    assert len(checks) == 1
    assert living(site, person) == 1


def test_a_name_without_a_partition_is_of_the_default_one(site: Site) -> None:
    person = site.world.person()
    assert status(site, basic(person, name=person.name)) == 200
    assert status(site, basic(person, name=f"{person.name}@elsewhere")) == 401


@pytest.mark.parametrize("name", ["nobody@demo", "nobody", "x@y@z", "@", "a" * 300, "'; --", "\\"])
def test_a_stranger_is_refused_after_one_check(site: Site, checks: list[str | None], name: str) -> None:
    assert status(site, basic(site.world.reader, "secret", name)) == 401
    assert checks == [None]


@pytest.mark.parametrize("path", ["/acls/x.json", "/users/a@demo.xml", "/types.json", ".json", "/objects/x"])
def test_one_request_checks_one_password_also_where_a_suffix_may_be_part_of_a_name(
    site: Site, checks: list[str | None], path: str
) -> None:
    assert status(site, basic(site.world.person(), "wrong"), path) == 401
    assert len(checks) == 1


@pytest.mark.parametrize("kind", ["wrong password", "not in the role", "disabled", "locked"])
def test_who_may_not_sign_in_is_refused_like_a_stranger(site: Site, checks: list[str | None], kind: str) -> None:
    person = site.world.person(member=kind != "not in the role")
    if kind == "disabled":
        decide(site, administration.set_disabled, site.world.entry(person), True, site.world.clock())
    if kind == "locked":
        decide(site, administration.set_locked, site.world.entry(person), True, site.world.clock())
    password = "wrong" if kind == "wrong password" else person.password
    stranger = site.http.get(f"{site.repository}/types", headers=basic(person, "x", "nobody@demo"))
    refused = site.http.get(f"{site.repository}/types", headers=basic(person, password))
    assert (refused.status_code, refused.json()["code"]) == (401, stranger.json()["code"])
    assert refused.json()["message"] == stranger.json()["message"]
    assert len(checks) == 2
    assert living(site, person) == 0


@pytest.mark.parametrize("way", ["disabled", "locked", "new password", "signed out", "removed", "role"])
def test_what_ends_a_right_ends_it_for_the_next_request(site: Site, way: str) -> None:
    person, clock = site.world.person(), site.world.clock
    assert status(site, basic(person)) == 200
    entry = site.world.entry(person)
    if way == "role":
        with site.world.directory_db.begin() as cx:
            resources.remove_from_role(cx, resources.by_id(cx, site.world.resource_id), entry)
    else:
        decisions: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
            "disabled": (administration.set_disabled, (True,)),
            "locked": (administration.set_locked, (True,)),
            "new password": (administration.set_password, ("another hash",)),
            "signed out": (administration.sign_out, ()),
            "removed": (administration.remove, ()),
        }
        decision, more = decisions[way]
        decide(site, decision, entry, *more, clock())
    expected = 200 if way == "signed out" else 401  # the password is still right: a new sign-in
    assert status(site, basic(person)) == expected
    if way != "removed":
        # The grant that was remembered ends after the answer.
        until(lambda: living(site, person) == (1 if way == "signed out" else 0))


def test_a_right_that_comes_back_is_there_for_the_next_request(site: Site) -> None:
    person, clock = site.world.person(), site.world.clock
    assert status(site, basic(person)) == 200
    for disabled, expected in ((True, 401), (False, 200)):
        decide(site, administration.set_disabled, site.world.entry(person), disabled, clock())
        assert status(site, basic(person)) == expected


def test_a_new_password_is_right_at_once_and_the_old_one_is_not(site: Site) -> None:
    person, other = site.world.person(), site.world.person()
    assert status(site, basic(person)) == 200
    with site.world.directory_db.begin() as cx:
        administration.set_password(cx, site.world.entry(person), site.world.hash_of("another one"), site.world.clock())
    assert status(site, basic(person)) == 401
    assert status(site, basic(person, "another one")) == 200
    assert status(site, basic(other)) == 200


def test_a_pause_holds_for_who_was_remembered_when_it_began(site: Site) -> None:
    """The wrong passwords come from where the right one came from: nobody guesses past the pause."""
    person = site.world.person()
    assert status(site, basic(person)) == 200
    for _ in range(site.installation.settings.directory.lockout_failures):
        assert status(site, basic(person, "wrong")) == 401
    assert status(site, basic(person)) == 401
    with site.world.clock.shift(site.installation.settings.directory.lockout_seconds):
        assert status(site, basic(person)) == 200


def test_an_expired_access_token_means_a_new_sign_in(site: Site, checks: list[str | None]) -> None:
    person = site.world.person()
    assert status(site, basic(person)) == 200
    with site.world.clock.shift(site.installation.settings.directory.access_token_seconds):
        assert status(site, basic(person)) == 200
        assert status(site, basic(person)) == 200
    assert len(checks) == 2


def test_a_server_that_stops_ends_the_grants(site: Site, loop: Loop) -> None:
    person = site.world.person()
    with closing(Site(site.world, site.kind, loop)) as other:
        assert status(other, basic(person)) == 200
        assert living(site, person) == 1
    assert living(site, person) == 0


def test_a_client_with_a_secret_signs_callers_in(site: Site, loop: Loop) -> None:
    person, client = site.world.person(), f"repository.basic_client={site.world.confidential_id}"
    for secret, expected in ((site.world.confidential_secret, 200), ("wrong", 503), ("", 503)):
        overrides = (client, f"repository.basic_secret={secret}") if secret else (client,)
        with closing(Site(site.world, site.kind, loop, *overrides)) as served:
            assert status(served, basic(person)) == expected


def test_a_client_that_does_not_exist_is_the_server_s_fault(site: Site, loop: Loop) -> None:
    with closing(Site(site.world, site.kind, loop, "repository.basic_client=nobody")) as served:
        answer = served.http.get(f"{served.repository}/types", headers=basic(site.world.person()))
        assert (answer.status_code, answer.json()["code"]) == (503, "E_DIRECTORY_UNAVAILABLE")


def bearer_challenge(site: Site) -> str:
    """RFC 6750 3, and RFC 9728 5.1: where the repository says which authorization server lets callers in."""
    metadata = f"{site.base}/.well-known/oauth-protected-resource{site.repository}"
    return f'Bearer realm="{site.names.realm}", resource_metadata="{metadata}"'


def test_without_a_client_basic_is_neither_offered_nor_taken(lonely: Site, checks: list[str | None]) -> None:
    answer = lonely.http.get(f"{lonely.repository}/types", headers=basic(lonely.world.person()))
    assert answer.status_code == 401
    assert answer.headers.get_list("www-authenticate") == [bearer_challenge(lonely)]
    assert checks == []


def test_a_401_offers_basic_first_and_then_bearer(site: Site) -> None:
    answer = site.http.get(f"{site.repository}/types")
    assert answer.status_code == 401
    basic_challenge = f'Basic realm="{site.names.realm}", charset="UTF-8"'
    assert answer.headers.get_list("www-authenticate") == [basic_challenge, bearer_challenge(site)]
    answer = site.http.get(f"{site.repository}/types", headers={"Authorization": "Bearer abc"})
    realm, metadata = bearer_challenge(site).split(", ")
    assert answer.headers.get_list("www-authenticate")[1] == f'{realm}, error="invalid_token", {metadata}'


@pytest.mark.parametrize(
    ("asked", "offered"),
    [("x-basic", "x-basic"), ("a b", "Basic"), ("é", "Basic"), ("x" * 100, "Basic"), ("", "Basic")],
)
def test_a_caller_may_name_another_scheme_so_that_no_browser_asks(site: Site, asked: str, offered: str) -> None:
    headers = {site.names.unauth_scheme_header.encode(): asked.encode("latin-1")}
    answer = site.http.get(f"{site.repository}/types", headers=headers)
    assert answer.headers.get_list("www-authenticate")[0].startswith(f"{offered} realm=")


def test_two_authorization_headers_are_refused(site: Site) -> None:
    person = site.world.person()
    headers = [("Authorization", basic(person)["Authorization"]), ("Authorization", "Bearer abc")]
    assert site.http.get(f"{site.repository}/types", headers=headers).status_code == 400


def test_a_sign_in_leaves_one_event_whatever_the_method(site: Site) -> None:
    person, file = site.world.person(), site.installation.events
    about = {"client": site.world.client_id, "resource": site.world.repository, "how": "HTTP Basic"}

    def left(*passwords: str) -> list[dict[str, Any]]:
        before = file.stat().st_size if file.exists() else 0
        for password in passwords:
            status(site, basic(person, password))
        lines = file.read_bytes()[before:].splitlines()
        return [event for line in lines if "count" not in (event := msgspec.json.decode(line))]

    with site.world.clock.shift(3600 * 30):
        signed_in = left(person.password, person.password, person.password)
        assert [(event["event"], event["result"], event["who"]) for event in signed_in] == [
            ("sign-in", "done", person.id)
        ]
        assert about.items() <= signed_in[0].items()
        assert signed_in[0]["origin"] == "127.0.0.1"
        refused = left("wrong")
        assert [(event["event"], event["result"], event["who"]) for event in refused] == [
            ("sign-in", "refused", person.id)
        ]
        wrong = ["wrong"] * (site.installation.settings.directory.lockout_failures - 1)
        assert "pause" in [event["event"] for event in left(*wrong)]


def test_another_guard_is_obeyed_at_once(site: Site) -> None:
    former, new = site.world.person(), site.world.person(member=False)
    site.world.admit(new, site.world.other_resource_id)
    guards = (site.world.other_resource_id, site.world.resource_id)
    shown = [
        (basic(former), {ticket_header(site): ticket(site, former)}),
        (basic(new), {ticket_header(site): ticket(site, new)}),
    ]
    for expected, guard in (((200, 401), guards[0]), ((401, 200), guards[1]), ((200, 401), "")):
        for (by_password, by_ticket), answer in zip(shown, expected, strict=True):
            assert status(site, by_password) == status(site, by_ticket) == answer
        if guard:
            with site.world.repository_db.begin() as cx:
                repositories.guard(cx, repositories.find(cx, site.world.repository), guard)


# Tickets


def test_a_ticket_opens_the_repository_for_who_is_in_the_role(site: Site) -> None:
    person, header = site.world.person(), ticket_header(site)
    for value, expected in (
        (ticket(site, person), 200),
        (ticket(site, person, site.world.other_resource_id), 200),
        (ticket(site, site.world.outsider), 401),
        ("garbage", 401),
        ("", 401),
        ("ä" * 100, 401),
    ):
        assert status(site, {header: value.encode("latin-1")}) == expected  # type: ignore[dict-item]
        assert status(site, cookie(site, value if value.isascii() else "")) == expected
    made = site.http.post(
        f"{site.repository}/objects",
        json={"properties": {"object_name": "by ticket"}},
        headers={header.lower(): ticket(site, person)},
    )
    assert made.status_code == 201
    assert made.json()["properties"]["owner_name"] == person.id


@pytest.mark.parametrize("way", ["disabled", "signed out", "role", "ended", "expired"])
def test_what_ends_a_ticket_ends_it_for_the_next_request(site: Site, way: str) -> None:
    person, clock = site.world.person(), site.world.clock
    value = ticket(site, person)
    headers = {ticket_header(site): value}
    assert status(site, headers) == 200
    entry = site.world.entry(person)
    if way == "disabled":
        decide(site, administration.set_disabled, entry, True, clock())
    elif way == "signed out":
        decide(site, administration.sign_out, entry, clock())
    elif way == "ended":
        decide(site, tickets.end, site.directory_names, value)
    elif way == "role":
        with site.world.directory_db.begin() as cx:
            resources.remove_from_role(cx, resources.by_id(cx, site.world.resource_id), entry)
    with clock.shift(3600 if way == "expired" else 0):
        assert status(site, headers) == 401


def test_a_ticket_opens_nothing_whose_resource_is_not_activated(site: Site) -> None:
    person = site.world.person()
    site.world.admit(person, site.world.idle_resource_id)
    name = f"idle-{next(site.world.numbers)}"
    with site.world.repository_db.begin() as cx:
        made = repositories.add(cx, name, site.world.idle_resource_id, "", site.world.clock())
    address = f"/{site.names.prefix}/repositories/{name}"
    try:
        assert site.http.get(address, headers={ticket_header(site): ticket(site, person)}).status_code == 401
    finally:
        with site.world.repository_db.begin() as cx:
            repositories.remove(cx, made)


def test_a_browser_that_signed_in_sends_its_cookie_to_the_repository(site: Site) -> None:
    person, names = site.world.person(), site.directory_names
    assert status(site, {}) == 401
    try:
        page = site.http.get(f"{site.login}?RFA={site.world.resource_id}", headers={"Accept": "text/html"})
        (mark,) = re.findall(rf'name="{names.form_prefix}csrf" value="([^"]+)"', page.text)
        fields = {"csrf": mark, "username": person.id, "password": person.password}
        form = {f"{names.form_prefix}{name}": value for name, value in fields.items()}
        assert site.http.post(site.login, data={**form, "RFA": site.world.resource_id}).status_code == 303
        assert status(site, {}) == 200
    finally:
        site.http.cookies.clear()


def test_a_cookie_alone_permits_no_write(site: Site) -> None:
    person = site.world.person()
    headers = cookie(site, ticket(site, person))
    body = {"properties": {"object_name": "by cookie"}}
    read = site.http.get(f"{site.repository}/types", headers=headers)
    assert read.status_code == 200
    prefix = site.names.csrf_prefix
    csrf = read.headers[f"{prefix}-Token"]
    assert read.headers[f"{prefix}-Header-Name"] == f"{prefix}-Token"
    assert read.headers[f"{prefix}-Query-Name"] == "csrf-token"
    refused = site.http.post(f"{site.repository}/objects", json=body, headers=headers)
    assert refused.status_code == 401
    assert "cookie" in refused.json()["message"]
    for forged in ("", "x", csrf[:-1], csrf.swapcase()):
        sent = headers | {f"{prefix}-Token": forged}
        assert status(site, sent, "/objects", "POST", json=body) == 401
        assert status(site, headers, f"/objects?csrf-token={forged}", "POST", json=body) == 401
    other = site.http.get(f"{site.repository}/types", headers=cookie(site, ticket(site, person)))
    assert not hmac.compare_digest(other.headers[f"{prefix}-Token"], csrf)
    assert status(site, headers | {f"{prefix}-Token": other.headers[f"{prefix}-Token"]}, "/objects", "POST") == 401
    assert status(site, headers | {f"{prefix}-Token": csrf}, "/objects", "POST", json=body) == 201
    assert status(site, headers, f"/objects?csrf-token={csrf}", "POST", json=body) == 201


def test_the_csrf_token_of_a_repository_is_not_that_of_the_consoles_forms(site: Site) -> None:
    value = ticket(site, site.world.person())
    told = site.http.get(f"{site.repository}/types", headers=cookie(site, value)).headers
    with site.world.directory_db.read() as cx:
        assert told[f"{site.names.csrf_prefix}-Token"] != frame.csrf(cx, value)


def test_only_who_comes_by_a_cookie_is_told_a_csrf_token(site: Site) -> None:
    person = site.world.person()
    for headers in (site.bearer(person), basic(person), {ticket_header(site): ticket(site, person)}):
        answer = site.http.get(f"{site.repository}/types", headers=headers)
        assert answer.status_code == 200
        assert f"{site.names.csrf_prefix}-Token" not in answer.headers


def test_no_shared_cache_keeps_what_a_ticket_opened(site: Site) -> None:
    person = site.world.person()
    value = ticket(site, person)
    for headers in ({ticket_header(site): value}, cookie(site, value)):
        answer = site.http.get(f"{site.repository}/types", headers=headers)
        assert "private" in answer.headers["cache-control"]


def test_a_ticket_over_plain_http_is_refused(site: Site) -> None:
    headers = {ticket_header(site): ticket(site, site.world.person())}
    answer = site.http.get(f"http://muniment.test{site.repository}/types", headers=headers)
    assert answer.status_code == 403


# Several at once


def test_the_first_valid_credential_counts(site: Site, checks: list[str | None]) -> None:
    person, other = site.world.person(), site.world.person()
    good = ticket(site, person)
    header = ticket_header(site)
    for authorization in ("Basic bWVhbmluZ2xlc3M=", "Basic x", "Bearer stale", "Bearer ", "Whatever"):
        assert status(site, {header: good, "Authorization": authorization}) == 200
        assert status(site, {**cookie(site, good), "Authorization": authorization}) == 200
    assert status(site, {header: good, **basic(other, "wrong")}) == 200
    assert checks == []
    assert status(site, {header: "stale", **cookie(site, "stale"), **basic(other)}) == 200
    assert len(checks) == 1
    stale = {header: "stale", **cookie(site, "stale"), **basic(other, "wrong")}
    assert status(site, stale) == 401
    assert len(checks) == 2


def test_what_was_sent_on_purpose_comes_before_a_browser_s_cookie(site: Site) -> None:
    person, other = site.world.person(), site.world.person()
    for headers in (basic(person), site.bearer(person), {ticket_header(site): ticket(site, person)}):
        made = site.http.post(
            f"{site.repository}/objects",
            json={"properties": {"object_name": "whose"}},
            headers={**cookie(site, ticket(site, other)), **headers},
        )
        assert made.json()["properties"]["owner_name"] == person.id


# A token in the address


def test_a_token_in_the_address_is_refused_unless_a_setting_allows_it(site: Site, loop: Loop) -> None:
    person = site.world.person()
    token = site.bearer(person)["Authorization"][7:]
    site.create("found", b"words of the found", person=person)
    path = f"{site.repository}/types?access_token={token}&items-per-page=1"
    assert site.http.get(path).status_code in {400, 401}
    with closing(Site(site.world, site.kind, loop, "repository.token_in_address=true")) as served:
        answer = served.http.get(path)
        assert answer.status_code == 200
        assert "private" in answer.headers["cache-control"]
        assert token not in answer.text
        assert served.http.get(path.replace(token, "stale")).status_code == 401
        assert served.http.get(f"{path}&access_token=twice").status_code == 400
        assert served.http.get(path.replace(token, "stale"), headers=basic(person)).status_code == 200
        assert served.http.get(f"http://muniment.test{path}").status_code == 403


# The description


def test_the_description_says_what_is_taken(site: Site, lonely: Site, loop: Loop) -> None:
    below = f"/{site.names.prefix}/repositories/{{repository}}/objects"

    def described(served: Site) -> tuple[list[str], list[str], dict[str, Any]]:
        document = served.http.get("/openapi.json").json()
        schemes = document["components"]["securitySchemes"]
        ways = []
        for path, method in ((f"{below}/{{id}}", "get"), (below, "post")):
            security = document["paths"][path][method]["security"]
            assert {name for way in security for name in way} <= schemes.keys()
            ways.append(["+".join(way) for way in security])
        return ways[0], ways[1], schemes

    reads, writes, schemes = described(site)
    assert reads == ["bearer", "basic", "ticket_header", "ticket"]
    assert writes == ["bearer", "basic", "ticket_header", "ticket+csrf"]
    assert schemes["ticket_header"]["name"] == ticket_header(site)
    assert described(lonely)[0] == ["bearer", "ticket_header", "ticket"]
    with closing(Site(site.world, site.kind, loop, "repository.token_in_address=true")) as served:
        assert "address_token" in described(served)[0]


def test_a_client_is_named_by_a_resource_s_identifier_too(site: Site) -> None:
    """The scope that a repository uses, which knows its resource by the identifier alone."""
    person = site.world.person()
    answer = site.ask_token(person, scope=f"resource:{site.world.resource_id}")
    assert answer.status_code == 200
    assert site.tokeninfo(answer.json()["access_token"]).json()["scopes"] == [site.world.scope]
    assert site.ask_token(person, scope=f"resource:{site.world.idle_resource_id}").json()["error"] == "invalid_scope"

"""Ours 23: who may call the directory by REST, with which credentials, and what a browser may not be made to do."""

import pytest

from muniment.directory.api.rest.callers import MARK_HEADER
from muniment.directory.console import frame
from muniment.directory.entries import editing, entries, memberships, resources
from tests.interface.by_rest import Rest, cookie, header, ticket
from tests.scenes import Person, Site


@pytest.fixture
def rest(site: Site) -> Rest:
    return Rest(site)


def admin(rest: Rest) -> Person:
    return rest.site.world.admin(rest.site.directory_names)


def let_in(rest: Rest) -> Person:
    """Make somebody whom the administration's resource lets in, and who administers nothing."""
    person = rest.site.world.person()
    with rest.site.world.directory_db.begin() as cx:
        resources.add_to_role(cx, resources.administration(cx), rest.site.world.entry(person))
    return person


def test_everybody_learns_who_they_are(rest: Rest) -> None:
    site = rest.site
    mine = rest.done("GET", "/currentuser", headers={header(site): ticket(site, site.world.outsider)})
    assert (mine["user"]["id"], mine["isAdmin"], mine["isSysAdmin"]) == (site.world.outsider.id, False, False)
    shown = Rest(site, "v1").done("GET", "/currentuser")
    assert (shown["user"]["name"], shown["is_admin"], shown["is_sys_admin"]) == ("admin", True, True)
    person = let_in(rest)
    token = site.ask_token(person, scope=site.administration_scope).json()["access_token"]
    shown_by_token = rest.done("GET", "/currentuser", headers={"Authorization": f"Bearer {token}"})
    assert (shown_by_token["user"]["id"], shown_by_token["isAdmin"]) == (person.id, False)
    assert rest("GET", f"/users/{person.id}", headers={"Authorization": f"Bearer {token}"}).status_code == 403
    with site.world.clock.shift(60):
        site.ask_token(person, scope=site.administration_scope)
        shown_again = rest.done("GET", "/currentuser", headers={"Authorization": f"Bearer {token}"})
    assert shown_again["user"] == rest.done("GET", f"/users/{person.id}"), "with their last sign-in"


def test_the_first_valid_credential_counts(rest: Rest) -> None:
    site = rest.site
    good = ticket(site, admin(rest))
    for headers in (
        {header(site): good, "Authorization": "Basic bm90OnZhbGlk"},
        {header(site).lower(): good, "Authorization": "Bearer stale"},
        {"Cookie": f"{cookie(site)}={good}", "Authorization": "Bearer stale"},
        {"Cookie": f"{cookie(site)}={good}", "Authorization": "Bearer "},
        {"Cookie": f"{cookie(site)}=garbage", header(site): good},
        {"Cookie": f"{cookie(site)}={good}", header(site): "garbage"},
        {"Cookie": f"{cookie(site)}=garbage", "Authorization": f"Bearer {site.administrator()}"},
    ):
        assert rest("GET", "/currentuser", headers=headers).status_code == 200, headers
    ended = ticket(site, admin(rest), seconds=-1)
    answer = rest("GET", "/currentuser", headers={header(site): ended, "Authorization": "Bearer stale"})
    assert (answer.status_code, answer.json()["status"]) == (400, 1034)


def test_of_several_ticket_headers_the_first_valid_one_counts(rest: Rest) -> None:
    site = rest.site
    good, address = ticket(site, admin(rest)), f"{site.directory}/rest/currentuser"
    for several, status in ((["bad", good], 200), ([good, "bad"], 200), (["bad"] * 100 + [good], 401)):
        answer = site.http.get(address, headers=[(header(site), each) for each in several])
        assert answer.status_code == status, len(several)


def test_a_programs_ticket_writes_unless_another_site_had_it_sent(rest: Rest) -> None:
    site, partition = rest.site, rest.partition()
    good = ticket(site, admin(rest))
    for number, shown in enumerate(({header(site): good}, {"Cookie": f"{cookie(site)}={good}"})):
        body = {"userPartitionID": partition, "name": f"user-{number}"}
        assert rest("POST", "/users", body, headers=shown).status_code == 201
        for own in ({"Origin": site.base}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}):
            assert rest("PATCH", f"/users/user-{number}@{partition}", {}, headers=shown | own).status_code == 200
        for foreign in (
            {"Origin": "https://elsewhere.example"},
            {"Origin": "null"},
            {"Origin": site.base + ".elsewhere.example"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},
        ):
            refused = rest("DELETE", f"/users/user-{number}@{partition}", headers=shown | foreign)
            assert refused.status_code == 403, foreign
        assert rest("GET", f"/users/user-{number}@{partition}").status_code == 200


def test_a_browsers_ticket_writes_from_a_cookie_only_by_the_mark_of_our_forms(rest: Rest) -> None:
    site, partition = rest.site, rest.partition()
    page, others = ticket(site, admin(rest), made="page"), ticket(site, site.world.reader, made="page")
    with site.world.directory_db.read() as cx:
        mark, mark_of_another = frame.csrf(cx, page), frame.csrf(cx, others)
    shown = {"Cookie": f"{cookie(site)}={page}"}
    body = {"userPartitionID": partition, "name": "ann"}
    assert rest("GET", "/users", headers=shown).status_code == 200
    for headers in (
        shown,
        shown | {MARK_HEADER: ""},
        shown | {MARK_HEADER: mark_of_another},
        shown | {MARK_HEADER: mark, "Sec-Fetch-Site": "cross-site"},
        shown | {MARK_HEADER: mark, "Origin": "https://elsewhere.example"},
    ):
        answer = rest("POST", "/users", body, headers=headers)
        assert answer.status_code == 403, headers
        assert isinstance(answer.json(), dict)
    assert rest("POST", "/users", body, headers=shown | {MARK_HEADER: mark}).status_code == 201


@pytest.mark.parametrize(
    "media_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
)
def test_no_form_and_no_plain_text_is_read(rest: Rest, media_type: str) -> None:
    body = b'{"userPartitionID": "x", "name": "y"}'
    headers = {"Authorization": f"Bearer {rest.site.administrator()}", "Content-Type": media_type}
    answer = rest.site.http.post(f"{rest.site.directory}/rest/users", content=body, headers=headers)
    assert answer.status_code == 415


def test_json_is_read_with_a_charset_and_without_a_media_type(rest: Rest) -> None:
    partition = rest.partition()
    for number, media_type in enumerate(("application/json;charset=utf-8", "application/json", "")):
        body = f'{{"userPartitionID": "{partition}", "name": "user-{number}"}}'.encode()
        headers = {"Authorization": f"Bearer {rest.site.administrator()}"} | (
            {"Content-Type": media_type} if media_type else {}
        )
        answer = rest.site.http.post(f"{rest.site.directory}/rest/users", content=body, headers=headers)
        assert answer.status_code == 201, answer.text


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"[]", 400),
        (b"{", 400),
        (b'"text"', 400),
        (b'{"name": "a", "name": "b"}', 400),
        (b'{"userPartitionID": "a", "user_partition_id": "b"}', 400),
        (b'{"values": {}}', 400),
        (b'{"values": [{"name": "mail", "values": "x"}]}', 400),
        (b'{"name": "' + b"x" * 10_000_000 + b'"}', 413),
        (b'{"a": ' + b"[" * 100_000, 400),
    ],
)
def test_a_body_that_cannot_be_read_is_refused(rest: Rest, body: bytes, status: int) -> None:
    headers = {"Authorization": f"Bearer {rest.site.administrator()}", "Content-Type": "application/json"}
    answer = rest.site.http.post(f"{rest.site.directory}/rest/users", content=body, headers=headers)
    assert answer.status_code == status
    assert answer.json()["status"] == status


def test_an_administrator_sets_anybodys_password(rest: Rest) -> None:
    for key in ("newPassword", "new_password", "password"):
        person = rest.site.world.person()
        assert rest("PUT", f"/users/{person.id}/password", {key: "another one"}).status_code == 204
        assert rest.site.ask_token(person).status_code == 400
        assert rest.site.ask_token(person, password="another one").status_code == 200
    assert rest("PUT", f"/users/{person.id}/password", {}).status_code == 400
    assert rest("PUT", f"/users/{person.id}/password", {"newPassword": " "}).status_code == 400


def test_a_new_user_may_have_a_password_at_once(rest: Rest) -> None:
    partition = rest.partition()
    made = rest.user(partition, "ann", userPassword="from the start")
    assert "from the start" not in str(made)
    person = Person(f"ann@{partition}", "from the start")
    rest.site.world.admit(person, rest.site.world.resource_id)
    assert rest.site.ask_token(person).status_code == 200


def test_a_person_changes_their_own_password_with_the_old_one(rest: Rest) -> None:
    site, person = rest.site, rest.site.world.person()
    mine = {header(site): ticket(site, person)}
    body = {"newPassword": "another one", "oldPassword": person.password}
    for refused in ({"newPassword": "another one"}, body | {"oldPassword": "wrong"}):
        answer = rest("PUT", f"/users/{person.id}/password", refused, headers=mine)
        assert answer.status_code == 403, answer.text
    for other in (site.world.reader.id, "nobody@nowhere", f"admin@{site.directory_names.administration_partition}"):
        assert rest("PUT", f"/users/{other}/password", body, headers=mine).status_code == 403
    with_token = {"Authorization": f"Bearer {site.issue(person)['access_token']}"}
    assert rest("PUT", f"/users/{person.id}/password", body, headers=with_token).status_code == 403
    assert site.ask_token(person).status_code == 200
    assert rest("PUT", f"/users/{person.id}/password", body, headers=mine).status_code == 204
    assert site.ask_token(person).status_code == 400
    assert site.ask_token(person, password="another one").status_code == 200
    assert rest("GET", "/currentuser", headers=mine).status_code == 400


def test_wrong_old_passwords_pause_the_sign_in(rest: Rest) -> None:
    site, person = rest.site, rest.site.world.person()
    mine = {header(site): ticket(site, person)}
    wrong = {"newPassword": "another one", "oldPassword": "wrong"}
    for _ in range(site.installation.settings.directory.lockout_failures):
        assert rest("PUT", f"/users/{person.id}/password", wrong, headers=mine).status_code == 403
    right = {"newPassword": "another one", "oldPassword": person.password}
    assert rest("PUT", f"/users/{person.id}/password", right, headers=mine).status_code == 403
    with site.world.clock.shift(901):
        later = {header(site): ticket(site, person)}
        assert rest("PUT", f"/users/{person.id}/password", right, headers=later).status_code == 204


@pytest.mark.parametrize("by", ["ticket", "token"])
def test_a_right_that_ends_ends_at_once(rest: Rest, by: str) -> None:
    site, person = rest.site, let_in(rest)
    token = site.ask_token(person, scope=site.administration_scope).json()["access_token"]
    shown = {header(site): ticket(site, person)} if by == "ticket" else {"Authorization": f"Bearer {token}"}
    for _ in range(2):
        with site.world.directory_db.begin() as cx:
            memberships.add_member(cx, entries.administrators(cx), site.world.entry(person))
        assert [rest("GET", "/users", headers=shown).status_code for _ in range(2)] == [200, 200]
        with site.world.directory_db.begin() as cx:
            memberships.remove_members(cx, entries.administrators(cx), [site.world.entry(person)])
        assert rest("GET", "/users", headers=shown).status_code == 403


def test_a_remembered_caller_ends_with_their_token_and_with_their_access(rest: Rest) -> None:
    site, statuses = rest.site, []
    for ending in ("revoked", "out of the role", "disabled", "expired"):
        person = let_in(rest)
        token = site.ask_token(person, scope=site.administration_scope).json()["access_token"]
        shown = {"Authorization": f"Bearer {token}"}
        assert [rest("GET", "/currentuser", headers=shown).status_code for _ in range(2)] == [200, 200]
        if ending == "revoked":
            assert site.revoke(token).is_success
        with site.world.directory_db.begin() as cx:
            if ending == "out of the role":
                resources.remove_from_role(cx, resources.administration(cx), site.world.entry(person))
            if ending == "disabled":
                editing.set_disabled(cx, site.world.entry(person), True, site.world.clock())
        with site.world.clock.shift(10**5 if ending == "expired" else 0):
            statuses.append(rest("GET", "/currentuser", headers=shown).status_code)
    assert statuses == [401, 403, 401, 401]

"""given 5: authentication."""

from contextlib import nullcontext

import pytest

from muniment.directory.entries import editing, entries, resources, system
from muniment.directory.refusals import BadAttribute
from tests.scenes import Site


def test_5_1_the_client_names_itself_and_the_user_shows_his_password(site: Site) -> None:
    person = site.world.person()
    assert site.ask_token(person).status_code == 200
    wrong = site.ask_token(person, password="wrong")
    assert (wrong.status_code, wrong.json()["error"]) == (400, "invalid_grant")


def test_5_2_the_user_must_be_in_the_access_role_of_the_resource(site: Site) -> None:
    assert site.ask_token(site.world.outsider).json()["error"] == "invalid_grant"
    assert site.ask_token(site.world.reader).status_code == 200


def test_5_2_membership_through_a_container_counts(site: Site) -> None:
    assert site.ask_token(site.world.writer).status_code == 200


def test_5_2_the_role_is_obeyed_live(site: Site) -> None:
    person = site.world.person()
    reply = site.issue(person)
    with site.world.directory_db.begin() as cx:
        user = entries.find_user(cx, site.directory_names, person.id)
        resources.remove_from_role(cx, resources.by_id(cx, site.world.resource_id), user)
    assert site.tokeninfo(reply["access_token"]).status_code == 401
    assert site.refresh(reply["refresh_token"]).json()["error"] == "invalid_grant"
    with site.world.directory_db.begin() as cx:
        resources.add_to_role(cx, resources.by_id(cx, site.world.resource_id), user)
    assert site.tokeninfo(reply["access_token"]).status_code == 200
    assert site.refresh(reply["refresh_token"]).status_code == 200


def test_5_2_a_user_in_the_role_can_sign_in_to_the_sign_in_page(site: Site) -> None:
    assert "csrf" in site.http.get(site.login, params={"RFA": site.world.resource_id}).text


def test_5_3_a_scope_is_tied_to_exactly_one_resource(site: Site) -> None:
    """A token without a resource, which OpenID Connect knows, opens none (ours 25)."""
    token = site.ask_token(site.world.reader, scope="openid").json()["access_token"]
    assert site.tokeninfo(token).status_code == 401
    for scope in ("resource:Demo+Files resource:Other", "resource:", "Demo+Files", "resource:Unknown", ""):
        answer = site.ask_token(site.world.reader, scope=scope)
        assert answer.status_code == 400
        assert answer.json()["error"] in {"invalid_scope", "invalid_request"}


def test_5_4_tls_is_required_unless_the_system_attribute_says_false(site: Site) -> None:
    form = {
        "grant_type": "password",
        "client_id": site.world.client_id,
        "username": site.world.reader.id,
        "password": site.world.reader.password,
        "scope": site.world.scope,
    }
    plain = f"http://muniment.test{site.login}"
    try:
        for value in (None, "true", "no", ""):
            with nullcontext() if value in (None, "true") else pytest.raises(BadAttribute):
                site.world.system_attribute(system.ENFORCE_SSL, value)
            refused = site.http.post(plain, data=form)
            assert refused.status_code == 403, value
            assert refused.json()["error"] == "invalid_request"
        for value in ("false", "FALSE"):
            site.world.system_attribute(system.ENFORCE_SSL, value)
            assert site.http.post(plain, data=form).status_code == 200, value
    finally:
        site.world.system_attribute(system.ENFORCE_SSL, None)


def test_5_4_over_plain_http_every_directory_address_and_every_credential_is_refused(site: Site) -> None:
    """failures A30."""
    plain = "http://muniment.test"
    assert site.http.get(plain + site.login).status_code == 403
    assert site.http.post(f"{plain}{site.oauth}/tokeninfo", json={}).status_code == 403
    assert site.http.delete(f"{plain}{site.oauth}/x").status_code == 403
    assert site.http.get(plain + site.repository, headers=site.bearer()).status_code == 403
    assert site.http.get(plain + site.repository, headers={"Cookie": "a=b"}).status_code == 403
    assert site.http.get(plain + site.repository, params={"access_token": "x"}).status_code == 403


def test_5_5_resource_servers_verify_with_their_resource_identifier(site: Site) -> None:
    token = site.issue(site.world.reader)["access_token"]
    assert site.tokeninfo(token, site.world.resource_id).status_code == 200
    assert site.tokeninfo(token, site.world.other_resource_id).status_code == 401


def test_5_6_a_search_is_authenticated_by_the_token_of_the_repositorys_resource(site: Site) -> None:
    assert site.http.get(f"{site.search_address}?q=x").status_code == 401
    assert site.http.get(f"{site.search_address}?q=x", headers=site.bearer()).status_code == 200


def test_5_7_the_described_flows_give_no_code_and_take_none(site: Site) -> None:
    """The code grant is ours 26: a code comes of a browser alone."""
    tokens = site.issue(site.world.reader)
    form = {"grant_type": "authorization_code", "client_id": site.world.client_id}
    for code in (tokens["access_token"], tokens["refresh_token"], "x" * 54):
        answer = site.http.post(site.login, data=form | {"code": code})
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")


def test_5_every_reason_to_refuse_a_user_reads_the_same(site: Site) -> None:
    """failures A1"""
    world = site.world
    disabled, locked = world.person(), world.person()
    with world.directory_db.begin() as cx:
        editing.set_disabled(cx, world.entry(disabled), True, world.clock())
        editing.set_locked(cx, world.entry(locked), True, world.clock())
    answers = [
        site.ask_token(world.person(), password="wrong"),
        site.ask_token(world.person(), username=f"nobody@{world.partition}"),
        site.ask_token(world.person(), username="nobody@nowhere"),
        site.ask_token(world.outsider),
        site.ask_token(disabled),
        site.ask_token(locked),
    ]
    assert {answer.status_code for answer in answers} == {400}
    assert len({answer.content for answer in answers}) == 1
    headers = [{k: v for k, v in answer.headers.items() if k.lower() != "x-request-id"} for answer in answers]
    assert all(header == headers[0] for header in headers)

"""given 4.1: POST {base_url}/dirws/login issues and refreshes tokens."""

import pytest

from tests.scenes import Site


def test_4_1_the_password_grant_answers_200_with_json(site: Site) -> None:
    answer = site.ask_token(site.world.reader)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("application/json")
    assert answer.json()["access_token"]


@pytest.mark.parametrize("parameter", ["grant_type", "client_id", "username", "password", "scope"])
def test_4_1_each_parameter_of_the_password_grant_is_required(site: Site, parameter: str) -> None:
    answer = site.ask_token(site.world.reader, **{parameter: None})
    assert answer.status_code in {400, 401}
    expected = {"invalid_client"} if parameter == "client_id" else {"invalid_request", "invalid_scope"}
    assert answer.json()["error"] in expected | {"invalid_request"}
    assert answer.json()["error_description"]


@pytest.mark.parametrize("parameter", ["grant_type", "client_id", "refresh_token"])
def test_4_1_each_parameter_of_the_refresh_is_required(site: Site, parameter: str) -> None:
    answer = site.refresh(site.issue(site.world.reader)["refresh_token"], **{parameter: None})
    assert answer.status_code in {400, 401}
    assert answer.json()["error"] in {"invalid_request", "invalid_client"}


@pytest.mark.parametrize("spelling", ["resource:Demo+Files", "resource:Demo%20Files", "resource:Demo%2BFiles"])
def test_4_1_each_spelling_of_the_scope_names_the_resource(site: Site, spelling: str) -> None:
    person = site.world.reader
    body = (
        f"grant_type=password&client_id={site.world.client_id}&username={person.id.replace('@', '%40')}"
        f"&password={person.password}&scope={spelling}"
    )
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = site.http.post(site.login, content=body, headers=headers)
    assert answer.status_code == 200, answer.text
    assert site.tokeninfo(answer.json()["access_token"]).json()["scopes"] == ["resource:Demo+Files"]


def test_4_1_the_user_id_is_name_at_partition(site: Site) -> None:
    person = site.world.reader
    assert site.ask_token(person, username=person.name).json()["error"] == "invalid_grant"
    assert site.ask_token(person, username=f"{person.name}@elsewhere").json()["error"] == "invalid_grant"
    assert site.ask_token(person, username=person.id.upper()).status_code == 200


def test_4_1_the_refresh_answers_a_new_access_token(site: Site) -> None:
    issued = site.issue(site.world.reader)
    answer = site.refresh(issued["refresh_token"])
    assert answer.status_code == 200
    reply = answer.json()
    assert set(reply) == {"access_token", "expires_in", "token_type"}
    assert reply["access_token"] != issued["access_token"]
    for token in (reply["access_token"], issued["access_token"]):
        assert site.tokeninfo(token).status_code == 200


def test_4_1_a_refresh_token_is_good_until_it_ends(site: Site) -> None:
    refresh_token = site.issue(site.world.reader)["refresh_token"]
    assert [site.refresh(refresh_token).status_code for _ in range(3)] == [200, 200, 200]


def test_4_1_the_refresh_needs_the_client_id_used_originally(site: Site) -> None:
    world = site.world
    refresh_token = site.issue(world.reader)["refresh_token"]
    other = site.refresh(refresh_token, client_id=world.confidential_id, client_secret=world.confidential_secret)
    assert (other.status_code, other.json()["error"]) == (400, "invalid_grant")
    assert site.refresh(refresh_token).status_code == 200


def test_4_1_an_access_token_is_no_refresh_token(site: Site) -> None:
    assert site.refresh(site.issue(site.world.reader)["access_token"]).json()["error"] == "invalid_grant"


def test_4_1_a_longer_scope_is_not_given_on_refresh(site: Site) -> None:
    refresh_token = site.issue(site.world.reader)["refresh_token"]
    assert site.refresh(refresh_token, scope="resource:Demo Files").status_code == 200
    assert site.refresh(refresh_token, scope="resource:Another").json()["error"] == "invalid_scope"


def test_4_1_another_grant_type_is_not_offered(site: Site) -> None:
    for grant_type in ("implicit", "CLIENT_CREDENTIALS", "PASSWORD", "urn:x"):
        answer = site.ask_token(site.world.reader, grant_type=grant_type)
        assert (answer.status_code, answer.json()["error"]) == (400, "unsupported_grant_type")


@pytest.mark.parametrize("content_type", ["", "; charset=utf-8"])
def test_4_1_a_refusal_is_json_for_a_program_whose_accept_prefers_html(site: Site, content_type: str) -> None:
    """Java's URL connection sends this header unless told otherwise."""
    headers = {
        "Accept": "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2",
        "Content-Type": "application/x-www-form-urlencoded" + content_type,
    }
    for form, code in (
        ("grant_type=refresh_token&refresh_token=x&client_id=" + site.world.client_id, "invalid_grant"),
        ("grant_type=refresh_token&refresh_token=x&client_id=nobody", "invalid_client"),
        ("grant_type=x&client_id=" + site.world.client_id, "unsupported_grant_type"),
        ("client_id=" + site.world.client_id, "invalid_request"),
    ):
        assert site.http.post(site.login, content=form, headers=headers).json()["error"] == code


def test_4_1_the_address_is_the_sign_in_page_too(site: Site) -> None:
    answer = site.http.get(site.login, headers={"Accept": "text/html"})
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/html")
    assert "<form" in answer.text

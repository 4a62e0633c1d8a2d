"""given 4.3: POST {base_url}/dirws/v1/authentication/oauth/tokeninfo verifies a token."""

from tests.scenes import Site


def test_4_3_a_live_token_answers_200(site: Site) -> None:
    token = site.issue(site.world.reader)["access_token"]
    answer = site.tokeninfo(token)
    assert answer.status_code == 200
    assert answer.json()["user"]["id"] == site.world.reader.id


def test_4_3_the_path_without_oauth_answers_the_same(site: Site) -> None:
    token = site.issue(site.world.reader)["access_token"]
    answer = site.tokeninfo(token, address=f"{site.directory}/v1/authentication/tokeninfo")
    assert answer.status_code == 200
    assert answer.json() == site.tokeninfo(token).json()


def test_4_3_content_type_and_accept_are_json(site: Site) -> None:
    token = site.issue(site.world.reader)["access_token"]
    body = {"token": token, "resource_id": site.world.resource_id}
    address = f"{site.oauth}/tokeninfo"
    assert site.http.post(address, json=body, headers={"Accept": "application/json"}).status_code == 200
    assert site.http.post(address, data=body).status_code == 415


def test_4_3_the_resource_identifier_may_be_written_in_capitals(site: Site) -> None:
    token = site.issue(site.world.reader)["access_token"]
    assert site.tokeninfo(token, site.world.resource_id.upper()).status_code == 200


def test_4_3_an_answer_is_kept_by_nobody(site: Site) -> None:
    answer = site.tokeninfo(site.issue(site.world.reader)["access_token"])
    assert "no-store" in answer.headers["Cache-Control"]

"""given 4.4: DELETE {base_url}/dirws/v1/authentication/oauth/<token> revokes a token."""

from tests.scenes import Site

METHODS = {"DELETE", "HEAD", "GET", "OPTIONS", "POST", "PUT"}


def test_4_4_success_is_204_without_a_body(site: Site) -> None:
    answer = site.revoke(site.issue(site.world.reader)["access_token"])
    assert answer.status_code == 204
    assert answer.content == b""


def test_4_4_the_reply_carries_the_four_cors_headers(site: Site) -> None:
    answer = site.revoke(site.issue(site.world.reader)["access_token"])
    assert answer.headers["Access-Control-Allow-Origin"]
    assert {word.strip() for word in answer.headers["Access-Control-Allow-Methods"].split(",")} == METHODS
    assert answer.headers["Access-Control-Allow-Headers"] == "Content-Type"
    assert answer.headers["Access-Control-Max-Age"].isdigit()


def test_4_4_a_preflight_is_answered(site: Site) -> None:
    token = site.issue(site.world.reader)["access_token"]
    answer = site.http.options(
        f"{site.oauth}/{token}",
        headers={"Origin": "https://app.example.org", "Access-Control-Request-Method": "DELETE"},
    )
    assert answer.status_code in {200, 204}
    assert "DELETE" in answer.headers["Access-Control-Allow-Methods"]
    assert site.tokeninfo(token).status_code == 200


def test_4_4_the_refresh_token_is_revoked_too(site: Site) -> None:
    reply = site.issue(site.world.reader)
    site.revoke(reply["access_token"])
    assert site.refresh(reply["refresh_token"]).json()["error"] == "invalid_grant"


def test_4_4_a_dead_token_is_204(site: Site) -> None:
    reply = site.issue(site.world.reader)
    assert [site.revoke(reply["access_token"]).status_code for _ in range(2)] == [204, 204]
    reply = site.issue(site.world.reader)
    with site.world.clock.shift(reply["expires_in"] + 1):
        assert site.revoke(reply["access_token"]).status_code == 204


def test_4_4_an_unparseable_token_is_401(site: Site) -> None:
    token = site.issue(site.world.reader)["access_token"]
    for garbage in ("garbage", token[:-1], token[1:], token + "x", "a.b.c", "%20", "%F0%9F%97%84"):
        answer = site.revoke(garbage)
        assert answer.status_code == 401, garbage
        assert answer.json()["error"]
    assert site.tokeninfo(token).status_code == 200


def test_4_4_the_next_search_is_refused(site: Site) -> None:
    token = site.issue(site.world.reader)["access_token"]
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/xml"}
    body = site.aql()
    assert site.http.post(site.search_address, content=body, headers=headers).status_code in {200, 400}
    site.revoke(token)
    assert site.http.post(site.search_address, content=body, headers=headers).status_code == 401

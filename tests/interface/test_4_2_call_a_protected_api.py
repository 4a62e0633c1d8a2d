"""given 4.2: a request to a resource server carries the access token as a bearer."""

import pytest

from tests.scenes import Site


def test_4_2_the_repository_takes_the_bearer_header(site: Site) -> None:
    token = site.issue(site.world.reader)["access_token"]
    answer = site.http.get(site.repository, headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 200


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Bearer garbage", "Basic eDp5", "Token x"])
def test_4_2_without_a_good_bearer_the_repository_answers_401(site: Site, header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header}
    answer = site.http.get(f"{site.search_address}?q=x", headers=headers)
    assert answer.status_code == 401
    assert [line.split()[0] for line in answer.headers.get_list("WWW-Authenticate")] == ["Basic", "Bearer"]


def test_4_2_a_revoked_token_is_refused_from_the_next_request_on(site: Site) -> None:
    """failures B6"""
    token = site.issue(site.world.reader)["access_token"]
    headers = {"Authorization": f"Bearer {token}"}
    assert site.http.get(f"{site.search_address}?q=x", headers=headers).status_code == 200
    site.revoke(token)
    assert site.http.get(f"{site.search_address}?q=x", headers=headers).status_code == 401


def test_4_2_a_token_for_another_resource_is_refused(site: Site) -> None:
    answer = site.http.get(site.repository, headers={"Authorization": f"Bearer {site.administrator()}"})
    assert answer.status_code == 401

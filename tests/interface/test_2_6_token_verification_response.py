"""given 2.5 and 2.6: the token verification request and its response."""

import re
import uuid
from datetime import UTC, datetime

from tests.scenes import Site


def test_2_5_the_request_takes_a_token_and_a_resource_id(site: Site) -> None:
    token = site.issue(site.world.reader)["access_token"]
    assert site.tokeninfo(token, site.world.resource_id).status_code == 200
    address = f"{site.oauth}/tokeninfo"
    for body in ({"token": token}, {"resource_id": site.world.resource_id}, {}):
        assert site.http.post(address, json=body).status_code == 400


def test_2_6_the_response_has_these_fields(site: Site) -> None:
    answer = site.tokeninfo(site.issue(site.world.reader)["access_token"])
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("application/json")
    assert set(answer.json()) == {"user", "expiry_time", "token_id", "scopes", "data_map"}


def test_2_6_expiry_time_is_an_iso_8601_utc_timestamp(site: Site) -> None:
    reply = site.issue(site.world.reader)
    text = site.tokeninfo(reply["access_token"]).json()["expiry_time"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", text)
    expiry = datetime.fromisoformat(text)
    now = datetime.fromtimestamp(site.world.clock() / 1e6, UTC)
    assert (expiry - now).total_seconds() == reply["expires_in"]


def test_2_6_token_id_is_a_uuid_and_tells_nothing_of_the_token(site: Site) -> None:
    token = site.issue(site.world.reader)["access_token"]
    one, two = (site.tokeninfo(token).json()["token_id"] for _ in range(2))
    assert str(uuid.UUID(one)) == one == two
    other = site.tokeninfo(site.issue(site.world.reader)["access_token"]).json()["token_id"]
    assert other != one


def test_2_6_scopes_are_spelled_with_plus(site: Site) -> None:
    token = site.ask_token(site.world.reader, scope="resource:Demo Files").json()["access_token"]
    assert site.tokeninfo(token).json()["scopes"] == ["resource:Demo+Files"]


def test_2_6_the_data_map_says_whether_the_user_has_a_password(site: Site) -> None:
    data_map = site.tokeninfo(site.issue(site.world.reader)["access_token"]).json()["data_map"]
    assert data_map == {"OTDS_HAS_PASSWORD": "true"}

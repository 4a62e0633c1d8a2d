"""given 2.3 and 2.4: the token request and its response."""

from tests.scenes import Site


def test_2_4_the_password_grants_reply_has_four_fields(site: Site) -> None:
    answer = site.ask_token(site.world.reader)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("application/json")
    reply = answer.json()
    assert set(reply) == {"access_token", "expires_in", "refresh_token", "token_type"}
    assert isinstance(reply["access_token"], str)
    assert isinstance(reply["refresh_token"], str)
    assert reply["access_token"] != reply["refresh_token"]


def test_2_4_expires_in_is_an_integer_of_seconds(site: Site) -> None:
    reply = site.issue(site.world.reader)
    assert type(reply["expires_in"]) is int
    assert reply["expires_in"] == site.installation.settings.directory.access_token_seconds


def test_2_4_token_type_is_always_bearer(site: Site) -> None:
    reply = site.issue(site.world.reader)
    assert reply["token_type"] == "Bearer"
    assert site.refresh(reply["refresh_token"]).json()["token_type"] == "Bearer"


def test_2_4_the_refresh_reply_carries_no_refresh_token(site: Site) -> None:
    reply = site.refresh(site.issue(site.world.reader)["refresh_token"]).json()
    assert set(reply) == {"access_token", "expires_in", "token_type"}


def test_2_4_a_reply_is_kept_by_nobody(site: Site) -> None:
    answer = site.ask_token(site.world.reader)
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Pragma"] == "no-cache"

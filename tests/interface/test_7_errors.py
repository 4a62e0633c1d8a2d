"""given 7: the status codes of token verification, in their order, and the shape of a no."""

import secrets
import uuid

import pytest

from muniment.directory.administration import decisions, resource_decisions
from muniment.directory.entries import resources
from tests.scenes import Site


def test_7_200_token_info_returned(site: Site) -> None:
    assert site.tokeninfo(site.issue(site.world.reader)["access_token"]).status_code == 200


@pytest.mark.parametrize("resource_id", ["", "x", "0", "not-a-uuid", "00000000-0000-0000-0000-00000000000g"])
def test_7_400_invalid_resource_id(site: Site, resource_id: str) -> None:
    assert site.tokeninfo(site.issue(site.world.reader)["access_token"], resource_id).status_code == 400


def test_7_400_unknown_resource_id(site: Site) -> None:
    assert site.tokeninfo(site.issue(site.world.reader)["access_token"], str(uuid.uuid4())).status_code == 400


def test_7_400_comes_before_everything_else(site: Site) -> None:
    reply = site.issue(site.world.reader)
    site.revoke(reply["access_token"])
    for token in (reply["access_token"], "garbage", ""):
        assert site.tokeninfo(token, str(uuid.uuid4())).status_code == 400


def test_7_401_the_token_cannot_be_parsed(site: Site) -> None:
    reply = site.issue(site.world.reader)
    token = reply["access_token"]
    altered = [token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1 :] for at in (0, 10, len(token) - 2)]
    for garbage in ("", "garbage", "é", "a.b.c", token + "A", token[:-1], secrets.token_urlsafe(40), *altered):
        assert site.tokeninfo(garbage).status_code == 401, garbage
    assert site.tokeninfo(reply["refresh_token"]).status_code == 401


def test_7_401_the_token_is_for_another_resource_also_when_it_is_dead(site: Site) -> None:
    """failures A12"""
    token = site.issue(site.world.reader)["access_token"]
    assert site.tokeninfo(token, site.world.other_resource_id).status_code == 401
    site.revoke(token)
    assert site.tokeninfo(token, site.world.other_resource_id).status_code == 401


def test_7_410_the_token_is_expired_or_revoked(site: Site) -> None:
    reply = site.issue(site.world.reader)
    with site.world.clock.shift(reply["expires_in"] + 1):
        assert site.tokeninfo(reply["access_token"]).status_code == 410
    site.revoke(reply["access_token"])
    assert site.tokeninfo(reply["access_token"]).status_code == 410


def test_7_401_the_user_has_no_access_any_more_and_410_outranks_it(site: Site) -> None:
    world = site.world
    person = world.person()
    live, dead = site.issue(person)["access_token"], site.issue(person)["access_token"]
    site.revoke(dead)
    with world.directory_db.begin() as cx:
        resource = resources.by_id(cx, world.resource_id)
        resource_decisions.remove_from_role(cx, resource, world.entry(person))
    assert site.tokeninfo(live).status_code == 401
    assert site.tokeninfo(dead).status_code == 410
    with world.directory_db.begin() as cx:
        resources.add_to_role(cx, resource, world.entry(person))
    assert site.tokeninfo(live).status_code == 200


@pytest.mark.parametrize("how", ["disabled", "locked", "deleted"])
def test_7_410_when_the_user_is_disabled_locked_or_deleted(site: Site, how: str) -> None:
    world = site.world
    person = world.person()
    token = site.issue(person)["access_token"]
    with world.directory_db.begin() as cx:
        if how == "disabled":
            decisions.set_disabled(cx, world.entry(person), True, world.clock())
        elif how == "locked":
            decisions.set_locked(cx, world.entry(person), True, world.clock())
        else:
            decisions.remove(cx, world.entry(person), world.clock())
    assert site.tokeninfo(token).status_code == 410


def test_7_an_error_carries_a_descriptive_message(site: Site) -> None:
    token = site.issue(site.world.reader)["access_token"]
    answers = [
        site.tokeninfo(token, "x"),
        site.tokeninfo("garbage"),
        site.tokeninfo(token, site.world.other_resource_id),
    ]
    site.revoke(token)
    answers.append(site.tokeninfo(token))
    for answer in answers:
        assert set(answer.json()) == {"status", "error", "errorDetails"}
        assert answer.json()["status"] == answer.status_code
        assert answer.json()["error"].endswith(".")
    assert len({answer.json()["error"] for answer in answers}) == 4

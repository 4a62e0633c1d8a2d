"""ours 25: what came of an exchange ends with each of the two tokens that it came of, however they end (RFC 8693)."""

from collections.abc import Callable
from typing import Any

import pytest

from muniment.directory.administration import resource_decisions
from muniment.directory.entries import resources
from muniment.directory.oauth import grants, sessions, tokens
from muniment.directory.oauth.token_requests import TokenAttempt, TokenRequest
from muniment.directory.refusals import InvalidTokenRequest
from tests.console.conftest import Scene
from tests.console.test_machine_grants import ACCESS, EXCHANGE, USER_ID, Service, info
from tests.office import PASSWORD, SCOPE
from tests.plans import steps

pytestmark = pytest.mark.campaign_on("postgresql")


@pytest.fixture
def acting(scene: Scene) -> Service:
    with scene.database.begin() as cx:
        resource_decisions.set_impersonation(cx, scene.resource, True, (), scene.clock())
    return Service(scene, allow_impersonation=True)


def password(scene: Scene, service: Service, name: str = "alice@People", scope: str = "openid") -> str:
    return service.token(grant_type="password", username=name, password=PASSWORD, scope=scope)


def deny_the_password(scene: Scene, holder: Service) -> None:
    holder.set(denied_grants=("password",))


def end_at_its_resource(scene: Scene, holder: Service) -> None:
    with scene.database.begin() as cx:
        sessions.end_at(cx, resources.find(cx, scene.names, "Other"), scene.clock())


def end_its_client(scene: Scene, holder: Service) -> None:
    with scene.database.begin() as cx:
        sessions.end_of(cx, holder.entry, scene.clock())


@pytest.mark.parametrize("end", [deny_the_password, end_at_its_resource, end_its_client])
def test_an_exchanged_token_ends_with_the_subjects_however_that_ends(
    scene: Scene, acting: Service, end: Callable[[Scene, Service], None]
) -> None:
    """Another client holds the subject's token, which is for the default resource of the one that acts."""
    with scene.database.begin() as cx:
        other = resources.add(cx, scene.names, "Other", scene.clock())
        resources.activate(cx, other.id, scene.clock())
        resources.add_to_role(cx, other, scene.group)
    acting.set(default_resource=other.id)
    holder = Service(scene, "holder")
    token = acting.exchange(password(scene, holder, scope="resource:Other"), kind=ACCESS).json()["access_token"]
    assert info(scene, token).status_code == 200
    end(scene, holder)
    assert info(scene, token).status_code == 410


def by_revocation(scene: Scene, acting: Service, token: str) -> None:
    assert acting.post("revoke", token=token).status_code == 200


def by_signing_out(scene: Scene, acting: Service, token: str) -> None:
    with scene.database.begin() as cx:
        assert sessions.end_of(cx, scene.outsider, scene.clock()).grants == 2


@pytest.mark.parametrize("end", [by_revocation, by_signing_out])
def test_a_delegated_token_ends_with_the_actors(
    scene: Scene, acting: Service, end: Callable[[Scene, Service, str], None]
) -> None:
    """The actor is bob: what alice lets him do for her ends when he is signed out."""
    actor = password(scene, acting, "bob@People")
    own: dict[str, Any] = {"actor_token": actor, "actor_token_type": ACCESS}
    delegated = acting.exchange(scene.shown_id(scene.user), **own).json()["access_token"]
    alone = acting.exchange(scene.shown_id(scene.user)).json()["access_token"]
    assert info(scene, delegated).status_code == 200
    end(scene, acting, actor)
    assert info(scene, delegated).status_code == 410
    assert info(scene, alone).status_code == 200


def test_an_actor_who_is_signed_out_between_the_look_up_and_the_decision_acts_for_nobody(
    scene: Scene, acting: Service
) -> None:
    actor = password(scene, acting, "bob@People")
    attempt = looked_up(scene, acting, subject_token=scene.shown_id(scene.user), actor_token=actor)
    by_revocation(scene, acting, actor)
    with scene.database.begin() as cx, pytest.raises(InvalidTokenRequest):
        grants.decide(cx, scene.directory.options, attempt, False, scene.clock())


def looked_up(scene: Scene, acting: Service, **tokens_shown: str) -> TokenAttempt[Any]:
    form = {"scope": SCOPE, "subject_token_type": USER_ID, "actor_token_type": ACCESS, **tokens_shown}
    request = TokenRequest(EXCHANGE, acting.name, acting.secret, None, form, "192.0.2.1")
    with scene.database.read() as cx:
        return grants.look_up(cx, scene.directory.options, scene.directory.clients, request, scene.clock())


@pytest.mark.only("sqlite", "PostgreSQL plans by the rows there are.")
def test_what_came_of_a_grant_is_found_by_indexes(scene: Scene, acting: Service) -> None:
    acting.token()
    ended = steps(scene.database, lambda cx: tokens.end(cx, "client", acting.entry.id, scene.clock()), writes=True)
    (looked_up,) = [plan for statement, plan in ended if "actor_source_id" in statement]
    assert not [step for step in looked_up if step.startswith(("SCAN grants", "SCAN exchanged", "SCAN source"))]

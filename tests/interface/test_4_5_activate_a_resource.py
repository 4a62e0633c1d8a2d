"""given 4.5: activation, at the address this product gives it."""

import uuid

import sqlalchemy as sa

from muniment.database import connections
from muniment.directory.entries import entries, memberships, resources
from tests import plans
from tests.scenes import Site


def test_4_5_it_takes_the_resource_identifier_and_answers_200_with_secret_key(site: Site) -> None:
    answer = site.activate(site.world.resource().id, site.administrator())
    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("application/json")
    assert answer.json()["secret_key"]


def test_4_5_without_a_live_token_it_is_401(site: Site) -> None:
    resource_id = site.world.resource().id
    ended = site.issue(site.world.reader)["access_token"]
    site.revoke(ended)
    for token in (None, "garbage", ended):
        answer = site.activate(resource_id, token)
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")


def test_4_5_by_somebody_who_administers_nothing_it_is_403(site: Site) -> None:
    resource_id = site.world.resource().id
    assert site.activate(resource_id, site.issue(site.world.reader)["access_token"]).status_code == 403


def test_4_5_an_administrator_is_whoever_is_in_the_administrators_group(site: Site) -> None:
    """Being let in at the administration's resource is another question."""
    world = site.world
    person = world.person()
    with world.directory_db.begin() as cx:
        resources.add_to_role(cx, resources.administration(cx), world.entry(person))
    token = site.ask_token(person, scope=site.administration_scope).json()["access_token"]
    assert site.activate(world.resource().id, token).status_code == 403
    with world.directory_db.begin() as cx:
        memberships.add_member(cx, entries.administrators(cx), world.entry(person))
    assert site.activate(world.resource().id, token).status_code == 200
    with world.directory_db.begin() as cx:
        memberships.remove_members(cx, entries.administrators(cx), [world.entry(person)])
    assert site.activate(world.resource().id, token).status_code == 403


def test_4_5_an_unknown_resource_is_refused_in_the_directorys_shape(site: Site) -> None:
    for resource_id in (str(uuid.uuid4()), "x", "0"):
        answer = site.activate(resource_id, site.administrator())
        assert answer.status_code in {400, 404}
        assert set(answer.json()) == {"status", "error", "errorDetails"}


def test_4_5_only_the_secrets_digest_is_kept(site: Site) -> None:
    secret = site.activate(site.world.resource().id, site.administrator()).json()["secret_key"]
    with site.world.directory_db.read() as cx:
        kept = [row for table in connections.directory_tables.sorted_tables for row in cx.execute(sa.select(table))]
    assert kept
    assert secret not in repr(kept)
    assert repr(secret.encode())[2:-1] not in repr(kept)


def test_4_5_who_activates_is_asked_once_in_the_transaction_that_activates(site: Site) -> None:
    resource_id, administrator = site.world.resource().id, site.administrator()
    with plans.sent_to() as sent:
        assert site.activate(resource_id, administrator).status_code == 200
    assert sum("access_role_members" in statement for statement, _ in sent) == 1

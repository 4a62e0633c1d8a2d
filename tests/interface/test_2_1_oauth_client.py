"""given 2.1: an OAuth client is a user of the clients partition, at its root location."""

import base64

import pytest

from muniment.directory.entries import editing, entries
from muniment.ground.refusals import Refusal
from tests.scenes import Site


def test_2_1_a_client_is_a_user_entry_of_the_clients_partition_at_its_root_location(site: Site) -> None:
    with site.world.directory_db.read() as cx:
        partition = site.directory_names.clients_partition
        found = entries.find_user(cx, site.directory_names, f"{site.world.client_id}@{partition}")
        assert found.name == site.world.client_id
        assert entries.location(site.directory_names, found) == (
            f"cn={found.name},ou={site.directory_names.root_unit},ou={partition},{site.directory_names.dn_suffix}"
        )


def test_2_1_a_client_is_refused_in_another_place_than_the_root_location(site: Site) -> None:
    with site.world.directory_db.begin() as cx:
        partition = entries.find_partition(cx, site.directory_names, site.directory_names.clients_partition)
        with pytest.raises(Refusal):
            editing.add_unit(cx, partition, f"unit-{next(site.world.numbers)}", site.world.clock())


def test_2_1_a_user_of_another_partition_is_no_client(site: Site) -> None:
    refused = site.ask_token(site.world.reader, client_id=site.world.writer.name)
    assert (refused.status_code, refused.json()["error"]) == (401, "invalid_client")


def test_2_1_the_user_name_is_the_client_id(site: Site) -> None:
    assert site.ask_token(site.world.reader, client_id=site.world.client_id).status_code == 200
    refused = site.ask_token(site.world.reader, client_id="nobody")
    assert (refused.status_code, refused.json()["error"]) == (401, "invalid_client")


def test_2_1_a_client_without_a_password_needs_none(site: Site) -> None:
    assert site.ask_token(site.world.reader).status_code == 200


def test_2_1_a_client_with_a_password_must_show_it_in_the_body(site: Site) -> None:
    world = site.world
    assert site.ask_token(world.reader, client_id=world.confidential_id).json()["error"] == "invalid_client"
    wrong = site.ask_token(world.reader, client_id=world.confidential_id, client_secret="wrong")
    assert (wrong.status_code, wrong.json()["error"]) == (401, "invalid_client")
    right = site.ask_token(world.reader, client_id=world.confidential_id, client_secret=world.confidential_secret)
    assert right.status_code == 200


def test_2_1_a_client_with_a_password_may_show_it_by_basic(site: Site) -> None:
    world = site.world
    form = {
        "grant_type": "password",
        "username": world.reader.id,
        "password": world.reader.password,
        "scope": world.scope,
    }
    shown = base64.b64encode(f"{world.confidential_id}:{world.confidential_secret}".encode()).decode()
    answer = site.http.post(site.login, data=form, headers={"Authorization": f"Basic {shown}"})
    assert answer.status_code == 200, answer.text
    wrong = base64.b64encode(f"{world.confidential_id}:wrong".encode()).decode()
    refused = site.http.post(site.login, data=form, headers={"Authorization": f"Basic {wrong}"})
    assert refused.status_code == 401
    assert refused.json()["error"] == "invalid_client"
    assert refused.headers["WWW-Authenticate"].startswith("Basic")


def test_2_1_every_refused_client_is_told_how_to_authenticate(site: Site) -> None:
    for client_id in ("nobody", site.world.confidential_id):
        refused = site.ask_token(site.world.reader, client_id=client_id)
        assert refused.status_code == 401
        assert refused.headers["WWW-Authenticate"].startswith("Basic ")

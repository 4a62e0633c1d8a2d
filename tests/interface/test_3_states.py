"""given 3: states and transitions of resources, access tokens and refresh tokens."""

from concurrent.futures import ThreadPoolExecutor

from tests.scenes import Site


def test_3_activation_answers_200_with_a_secret_key_once(site: Site) -> None:
    resource_id = site.world.resource().id
    first = site.activate(resource_id, site.administrator())
    assert first.status_code == 200
    assert isinstance(first.json()["secret_key"], str)
    assert len(first.json()["secret_key"]) >= 20
    second = site.activate(resource_id, site.administrator())
    assert second.status_code == 409
    assert "secret_key" not in second.text


def test_3_of_parallel_activations_exactly_one_succeeds(site: Site) -> None:
    resource_id, token = site.world.resource().id, site.administrator()
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: site.activate(resource_id, token).status_code, range(20)))
    assert answers.count(200) == 1
    assert set(answers) == {200, 409}


def test_3_an_access_token_expires_after_expires_in_seconds(site: Site) -> None:
    reply = site.issue(site.world.reader)
    with site.world.clock.shift(reply["expires_in"] - 1):
        assert site.tokeninfo(reply["access_token"]).status_code == 200
    with site.world.clock.shift(reply["expires_in"]):
        assert site.tokeninfo(reply["access_token"]).status_code == 410


def test_3_delete_on_the_token_revokes_it(site: Site) -> None:
    token = site.issue(site.world.reader)["access_token"]
    assert site.revoke(token).status_code == 204
    assert site.tokeninfo(token).status_code == 410


def test_3_revoking_an_access_token_revokes_its_refresh_token(site: Site) -> None:
    reply = site.issue(site.world.reader)
    assert site.revoke(reply["access_token"]).status_code == 204
    refused = site.refresh(reply["refresh_token"])
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_grant")


def test_3_a_revocation_ends_every_access_token_of_the_grant(site: Site) -> None:
    reply = site.issue(site.world.reader)
    refreshed = site.refresh(reply["refresh_token"]).json()["access_token"]
    assert site.tokeninfo(refreshed).status_code == 200
    assert site.revoke(refreshed).status_code == 204
    assert site.tokeninfo(refreshed).status_code == 410
    assert site.tokeninfo(reply["access_token"]).status_code == 410
    assert site.refresh(reply["refresh_token"]).json()["error"] == "invalid_grant"


def test_3_a_revocation_ends_nothing_of_another_grant(site: Site) -> None:
    one, two = site.issue(site.world.reader), site.issue(site.world.reader)
    site.revoke(one["access_token"])
    assert site.tokeninfo(two["access_token"]).status_code == 200


def test_3_a_refresh_token_expires(site: Site) -> None:
    reply = site.issue(site.world.reader)
    life = site.installation.settings.directory.refresh_token_seconds
    with site.world.clock.shift(life - 1):
        assert site.refresh(reply["refresh_token"]).status_code == 200
    with site.world.clock.shift(life):
        assert site.refresh(reply["refresh_token"]).json()["error"] == "invalid_grant"

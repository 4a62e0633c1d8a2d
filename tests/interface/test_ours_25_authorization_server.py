"""ours 25: what standard clients find at both halves together, and what REST sets of it."""

from typing import Any

import pytest
from joserfc.jwk import ECKey

from muniment.directory.administration import client_decisions
from muniment.directory.entries import editing, resources
from muniment.directory.entries.oauth_clients import ClientSettings
from muniment.directory.sign_in.passwords import new_secret
from tests.interface.by_rest import Rest
from tests.scenes import Site


def service(site: Site, **settings: Any) -> tuple[str, str]:
    """Make a confidential client in the access role of the world's resource."""
    secret, kept = new_secret()
    with site.world.directory_db.begin() as cx:
        entry = editing.add_client(cx, site.world.word(), site.world.clock(), password_hash=kept)
        resources.add_to_role(cx, resources.by_id(cx, site.world.resource_id), entry)
        client_decisions.set_settings(cx, entry, ClientSettings(**settings), site.world.clock())
    return entry.name, secret


def test_a_repository_names_who_lets_callers_in(site: Site) -> None:
    """RFC 9728 2, 3.1, 5.1: the 401 leads to the document, and the document to the issuer's metadata."""
    refused = site.http.get(f"{site.repository}/types")
    assert refused.status_code == 401
    (bearer,) = [each for each in refused.headers.get_list("www-authenticate") if each.startswith("Bearer")]
    told = site.http.get(bearer.partition('resource_metadata="')[2].rstrip('"')).json()
    issuer = f"{site.base}{site.directory}"
    assert told == {
        "resource": f"{site.base}{site.repository}",
        "resource_name": site.world.repository,
        "scopes_supported": [f"resource:{site.world.resource_id}"],
        "bearer_methods_supported": ["header"],
        "authorization_servers": [issuer],
    }
    metadata = site.http.get(f"{site.base}/.well-known/oauth-authorization-server{site.directory}").json()
    assert metadata["issuer"] == issuer
    assert site.http.get(f"/.well-known/oauth-protected-resource{site.repository}x").status_code == 404


def test_a_repositorys_address_is_a_name_of_its_resource(site: Site) -> None:
    """RFC 8707 2, compared exactly."""
    auth = service(site)
    asked = {"grant_type": "client_credentials", "resource": f"{site.base}{site.repository}"}
    answer = site.http.post(f"{site.directory}/oauth2/token", data=asked, auth=auth)
    assert answer.status_code == 200, answer.text
    header = {"Authorization": f"Bearer {answer.json()['access_token']}"}
    assert site.http.get(f"{site.repository}/types", headers=header).status_code == 200
    for wrong in (f"{asked['resource']}/", f"{asked['resource']}?x", asked["resource"].replace("https", "HTTPS")):
        refused = site.http.post(f"{site.directory}/oauth2/token", data=asked | {"resource": wrong}, auth=auth)
        assert (refused.status_code, refused.json()["error"]) == (400, "invalid_target"), wrong


@pytest.fixture
def rest(site: Site) -> Rest:
    return Rest(site)


def test_rest_sets_and_shows_how_a_client_gets_tokens(rest: Rest) -> None:
    key = ECKey.generate_key("P-256").as_dict(private=False)
    made = rest.done("POST", "/oauthclients", {"name": rest.site.world.word()})
    usual = {
        "grantTypes": [
            *("password", "client_credentials", "authorization_code"),
            *("urn:ietf:params:oauth:grant-type:token-exchange", "refresh_token"),
        ],
        "tokenEndpointAuthMethod": "client_secret_basic",
        "jwks": None,
        "takesEndpointAudience": False,
        "pkce": "required",
        "rotateRefreshTokens": None,
        "defaultResource": "",
        "mayAdminister": False,
    }
    assert made.items() >= usual.items()
    wanted = {
        "grantTypes": ["client_credentials", "urn:ietf:params:oauth:grant-type:device_code", "refresh_token"],
        "tokenEndpointAuthMethod": "private_key_jwt",
        "jwks": {"keys": [key]},
        "takesEndpointAudience": True,
        "pkce": "pkce_or_nonce",
        "rotateRefreshTokens": True,
        "defaultResource": rest.site.world.resource_id,
        "mayAdminister": True,
    }
    changed = rest.done("PATCH", f"/oauthclients/{made['id']}", wanted)
    assert changed.items() >= wanted.items()
    assert changed["confidential"] is True
    assert rest.done("PUT", f"/oauthclients/{made['id']}", changed) == changed
    refused: tuple[dict[str, Any], ...] = (
        {"pkce": "x"},
        {"grantTypes": ["implicit"]},
        {"tokenEndpointAuthMethod": "x"},
        {"jwks": {"keys": []}},
        {"jwks": None},
    )
    for wrong in refused:
        assert rest("PATCH", f"/oauthclients/{made['id']}", wrong).status_code == 400, wrong
    assert rest("PATCH", f"/oauthclients/{made['id']}", {"defaultResource": "x"}).status_code == 404
    public = rest.done(
        "POST", "/oauthclients", {"name": rest.site.world.word(), "jwks": {"keys": [key]}, "tokenEndpointAuthMethod":
        "private_key_jwt"},
    )  # fmt: skip
    assert (public["secret"], public["confidential"]) == (None, True)


def test_rest_sets_and_shows_what_a_resources_tokens_are(rest: Rest) -> None:
    made = rest.done("POST", "/resources", {"name": rest.site.world.word(), "tokenFormat": "ES256"})
    assert (made["tokenFormat"], made["tokenLifeTime"], made["address"]) == ("ES256", 0, "")
    address = f"https://{made['id']}.test/"
    wanted = {"tokenFormat": "RS256", "tokenLifeTime": 600, "address": address}
    changed = rest.done("PUT", f"/resources/{made['id']}", made | wanted)
    assert changed == made | wanted
    for wrong in ({"tokenFormat": "none"}, {"tokenLifeTime": 4000}, {"address": "x"}):
        assert rest("PUT", f"/resources/{made['id']}", wrong).status_code == 400, wrong
    other = rest.done("POST", "/resources", {"name": rest.site.world.word()})
    assert rest("PUT", f"/resources/{other['id']}", {"address": address}).status_code == 409
    guard = rest("PUT", f"/resources/{rest.site.world.resource_id}", {"tokenFormat": "RS256"})
    assert guard.status_code == 409, "it guards a repository"

"""Authlib and requests-oauthlib, unchanged, get tokens by every grant that they know, and use them."""

import ssl
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from authlib.integrations.httpx_client import OAuth2Client
from authlib.integrations.requests_client import OAuth2Session as AuthlibSession
from authlib.integrations.requests_client import OAuthError
from authlib.oauth2 import rfc8414, rfc9207
from authlib.oauth2.rfc6750 import InvalidTokenError
from authlib.oauth2.rfc7523 import PrivateKeyJWT
from authlib.oauth2.rfc9068 import JWTBearerTokenValidator
from authlib.oidc.core import CodeIDToken
from authlib.oidc.discovery import OpenIDProviderMetadata
from joserfc import jwt
from joserfc.jwk import KeySet, import_key
from oauthlib.oauth2 import (
    BackendApplicationClient,
    DeviceClient,
    InvalidGrantError,
    LegacyApplicationClient,
    WebApplicationClient,
)
from requests.auth import HTTPBasicAuth
from requests_oauthlib import OAuth2Session

from tests.peers.stage import EMAIL, LOOPBACK, WEB, Browser, Client, Resource, Stage

pytestmark = pytest.mark.peers

DEVICE_CODE = "urn:ietf:params:oauth:grant-type:device_code"
TOKEN_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"
VERIFIER = "a-verifier-of-at-least-forty-three-characters-"


class Found(dict[str, str]):
    """What the metadata of an issuer tells, with the stage that it was asked of."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self._opened = stage, list[requests.Session]()
        self.http = self._trusting(requests.Session())
        address = rfc8414.get_well_known_url(stage.issuer, external=True)
        metadata = rfc8414.AuthorizationServerMetadata(self.http.get(address).json())
        metadata.validate(metadata_classes=[rfc9207.AuthorizationServerMetadata])
        super().__init__(metadata)
        self.keys_of_issuer = KeySet.import_key_set(self.http.get(self["jwks_uri"]).json())

    def authlib(self, client: Client, **more: Any) -> Any:
        """Give Authlib's session of a client."""
        return self._trusting(AuthlibSession(client.id, client.secret or None, **self, **more))

    def oauthlib(self, client: Any, **more: Any) -> Any:
        """Give a session of requests-oauthlib for one of its clients."""
        return self._trusting(OAuth2Session(client=client, **more))

    def opens_repository(self, session: requests.Session) -> bool:
        """Whether the repository answers to the session's token."""
        return session.get(f"{self.stage.repository_address}/types").status_code == 200

    def close(self) -> None:
        """Close every session: an open connection delays the end of the server."""
        for session in self._opened:
            session.close()

    def _trusting(self, session: Any) -> Any:
        session.verify, session.trust_env = str(self.stage.ca_file), False
        self._opened.append(session)
        return session


@pytest.fixture(scope="session")
def found(stage: Stage) -> Iterator[Found]:
    opened = Found(stage)
    yield opened
    opened.close()


@pytest.fixture
def browser(stage: Stage) -> Iterator[Browser]:
    opened = stage.browser()
    yield opened
    opened.close()


# Authlib


def test_authlib_finds_nothing_wrong_with_the_metadata(found: Found) -> None:
    address = f"{found.stage.issuer}/.well-known/openid-configuration"
    metadata = OpenIDProviderMetadata(found.http.get(address).json())
    metadata.validate()
    assert metadata["issuer"] == found.stage.issuer
    assert metadata == dict(found)


@pytest.mark.parametrize("name", ["public", "confidential"])
def test_authlib_signs_a_person_in(found: Found, browser: Browser, name: str) -> None:
    """RFC 6749 4.1 with RFC 7636, OpenID Connect Core 3.1, RFC 7009 and 7662, by the class for each."""
    client: Client = getattr(found.stage, name)
    scope = f"openid email {found.stage.repository.scope}"
    back = LOOPBACK.replace("127.0.0.1", "127.0.0.1:49152") if name == "public" else WEB
    session = found.authlib(client, scope=scope, redirect_uri=back, code_challenge_method="S256")
    link, state = session.create_authorization_url(
        found["authorization_endpoint"], code_verifier=VERIFIER, nonce="a nonce"
    )
    answer = browser.allow(link)
    token = session.fetch_token(authorization_response=answer, state=state, code_verifier=VERIFIER)
    read = jwt.decode(token["id_token"], found.keys_of_issuer, algorithms=["RS256", "ES256"])
    asked = {"nonce": "a nonce", "client_id": client.id, "access_token": token["access_token"]}
    claims = CodeIDToken(read.claims, read.header, {"iss": {"essential": True, "value": found["issuer"]}}, asked)
    claims.validate()
    told = session.get(found["userinfo_endpoint"]).json()
    assert (told["sub"], told["email"]) == (claims["sub"], EMAIL)
    assert found.opens_repository(session)
    former = token["refresh_token"]
    refreshed = session.refresh_token()
    assert refreshed["access_token"] != token["access_token"]
    assert (refreshed["refresh_token"] != former) == (name == "public"), "a public client's rotate"
    assert found.opens_repository(session)
    assert session.revoke_token(found["revocation_endpoint"]).status_code == 200
    assert not found.opens_repository(session)


def test_authlib_reads_a_refusal_of_the_person(found: Found, browser: Browser) -> None:
    session = found.authlib(found.stage.public, scope="openid", redirect_uri=WEB, code_challenge_method="S256")
    link, state = session.create_authorization_url(found["authorization_endpoint"], code_verifier=VERIFIER)
    answer = browser.allow(link, button="deny")
    assert answer.startswith(f"{WEB}?error=access_denied&")
    assert f"state={state}" in answer


@pytest.mark.parametrize("way", ["client_secret_basic", "client_secret_post"])
def test_authlib_is_a_service_with_a_secret(found: Found, way: str) -> None:
    """RFC 6749 4.4; who has ended the token itself is told so by introspection."""
    client, resource = found.stage.confidential, found.stage.repository
    session = found.authlib(client, scope=resource.scope, token_endpoint_auth_method=way)
    token = session.fetch_token()
    assert "refresh_token" not in token
    assert found.opens_repository(session)
    told = session.introspect_token(found["introspection_endpoint"]).json()
    assert (told["active"], told["client_id"]) == (True, client.id)
    session.revoke_token(found["revocation_endpoint"])
    assert session.introspect_token(found["introspection_endpoint"]).json() == {"active": False}
    session.client_secret = "another"
    with pytest.raises(OAuthError, match="invalid_client"):
        session.fetch_token()


def with_key(found: Found, client: Client, address: str | None) -> Any:
    """Give Authlib's session of a client that signs assertions for this address: left out, the token endpoint."""
    session = found.authlib(client, scope=found.stage.repository.scope, token_endpoint_auth_method="private_key_jwt")
    session.client_secret = import_key(client.key)
    session.register_client_auth_method(PrivateKeyJWT(address, alg=client.key["alg"]))
    return session


@pytest.mark.parametrize("name", ["by_rsa", "by_ec"])
def test_authlib_is_a_service_with_a_key(found: Found, name: str) -> None:
    """RFC 7523 2.2, twice: each assertion has a ``jti`` of its own. Authlib's live for an hour."""
    session = with_key(found, getattr(found.stage, name), found["issuer"])
    assert session.fetch_token()["access_token"] != session.fetch_token()["access_token"]
    assert found.opens_repository(session)


def test_authlib_names_the_token_endpoint_in_assertions_where_the_client_may(found: Found) -> None:
    client = found.stage.by_ec
    with pytest.raises(OAuthError, match="invalid_client"):
        with_key(found, client, None).fetch_token()
    found.stage.set(client.id, takes_endpoint_audience=True)
    assert with_key(found, client, None).fetch_token()["access_token"]
    found.stage.set(client.id, takes_endpoint_audience=False)


def test_authlib_is_a_device(found: Found, browser: Browser) -> None:
    """RFC 8628: its parts are Authlib's, the questions are the device's own."""
    scope = found.stage.repository.scope
    session = found.authlib(found.stage.device, scope=scope)
    asked = {"client_id": found.stage.device.id, "scope": scope}
    told = session.post(found["device_authorization_endpoint"], data=asked, withhold_token=True).json()
    with pytest.raises(OAuthError, match="authorization_pending"):
        session.fetch_token(grant_type=DEVICE_CODE, device_code=told["device_code"])
    browser.connect_device(told["verification_uri_complete"])
    with found.stage.world.clock.shift(told["interval"]):
        token = session.fetch_token(grant_type=DEVICE_CODE, device_code=told["device_code"])
        assert found.opens_repository(session)
        assert session.refresh_token()["refresh_token"] != token["refresh_token"]
        assert found.opens_repository(session)


def test_authlib_exchanges_the_token_of_a_person(found: Found, browser: Browser) -> None:
    """RFC 8693: an application calls the repository for who is signed in to it."""
    client = found.stage.exchanging
    session = found.authlib(client, scope="openid", redirect_uri=WEB, code_challenge_method="S256")
    link, state = session.create_authorization_url(found["authorization_endpoint"], code_verifier=VERIFIER)
    person = session.fetch_token(authorization_response=browser.allow(link), state=state, code_verifier=VERIFIER)
    assert not found.opens_repository(session)
    token = session.fetch_token(
        grant_type=TOKEN_EXCHANGE,
        subject_token=person["access_token"],
        subject_token_type=ACCESS_TOKEN,
        scope=found.stage.repository.scope,
    )
    assert token["issued_token_type"] == ACCESS_TOKEN
    assert found.opens_repository(session)


def test_authlib_over_httpx_sends_a_password(found: Found) -> None:
    """Given 4.1, as a public client, at the address of that clause."""
    stage = found.stage
    with OAuth2Client(
        stage.public.id,
        scope=stage.repository.scope,
        token_endpoint_auth_method="none",
        verify=ssl.create_default_context(cafile=stage.ca_file),
        trust_env=False,
    ) as client:
        client.fetch_token(stage.base + stage.site.login, username=stage.person.id, password=stage.person.password)
        assert client.get(f"{stage.repository_address}/types").status_code == 200


class Verifier(JWTBearerTokenValidator):  # type: ignore[misc]
    """The API behind a resource, which verifies tokens by keys alone."""

    def __init__(self, found: Found, resource: Resource) -> None:
        super().__init__(found["issuer"], resource.address)
        self._found = found

    def get_jwks(self) -> Any:
        return self._found.keys_of_issuer

    def reads(self, text: str, scope: str) -> Any:
        claims = self.authenticate_token(text)
        self.validate_token(claims, [scope], None)
        return claims


@pytest.mark.parametrize("name", ["rs256", "es256"])
def test_authlib_verifies_signed_tokens(found: Found, name: str) -> None:
    """RFC 9068 4, with Authlib's own list of claims. Another resource takes none of them."""
    resource: Resource = getattr(found.stage, name)
    client = found.stage.confidential
    session = found.authlib(client, scope=resource.scope)
    token = session.fetch_token(resource=resource.address)
    scope = session.introspect_token(found["introspection_endpoint"]).json()["scope"]
    claims = Verifier(found, resource).reads(token["access_token"], scope)
    assert (claims["client_id"], claims.header["typ"], claims.header["alg"]) == (client.id, "at+jwt", name.upper())
    with pytest.raises(InvalidTokenError):
        Verifier(found, found.stage.opaque).reads(token["access_token"], scope)
    with pytest.raises(InvalidTokenError):
        Verifier(found, resource).reads(token["access_token"][:-4] + "AAAA", scope)


# requests-oauthlib


def test_requests_oauthlib_signs_a_person_in(found: Found, browser: Browser) -> None:
    stage = found.stage
    session = found.oauthlib(
        WebApplicationClient(stage.public.id), redirect_uri=WEB, scope=[stage.repository.scope], pkce="S256"
    )
    link, _ = session.authorization_url(found["authorization_endpoint"])
    answer = browser.allow(link)
    token = session.fetch_token(found["token_endpoint"], authorization_response=answer, include_client_id=True)
    assert token["token_type"] == "Bearer"
    assert found.opens_repository(session)
    refreshed = session.refresh_token(found["token_endpoint"], client_id=stage.public.id)
    assert refreshed["access_token"] != token["access_token"]
    assert found.opens_repository(session)


def test_requests_oauthlib_sends_a_password(found: Found) -> None:
    """Given 4.1, at the address of that clause; the client keeps the refresh token that it has (given 2.4)."""
    stage, address = found.stage, found.stage.base + found.stage.site.login
    session = found.oauthlib(LegacyApplicationClient(stage.public.id, scope=[stage.repository.scope]))
    who = {"username": stage.person.id, "password": stage.person.password, "client_id": stage.public.id}
    token = session.fetch_token(address, include_client_id=True, **who)
    assert token["token_type"] == "Bearer"
    assert found.opens_repository(session)
    refreshed = session.refresh_token(address, client_id=stage.public.id)
    assert refreshed["access_token"] != token["access_token"]
    assert refreshed["refresh_token"] == token["refresh_token"]
    assert found.opens_repository(session)
    who |= {"username": stage.outsider.id, "password": stage.outsider.password}
    with pytest.raises(InvalidGrantError, match=r"."):
        session.fetch_token(address, include_client_id=True, **who)


@pytest.mark.parametrize("in_body", [False, True])
def test_requests_oauthlib_is_a_service(found: Found, in_body: bool) -> None:
    client, scope = found.stage.confidential, found.stage.repository.scope
    session = found.oauthlib(BackendApplicationClient(client.id, scope=[scope]))
    shown: dict[str, Any] = {"auth": HTTPBasicAuth(client.id, client.secret)}
    if in_body:
        shown = {"include_client_id": True, "client_secret": client.secret}
    session.fetch_token(found["token_endpoint"], **shown)
    assert found.opens_repository(session)


def test_requests_oauthlib_is_a_device(found: Found, browser: Browser) -> None:
    """It builds the device's requests; who sends them is the caller."""
    client, scope = DeviceClient(found.stage.device.id), found.stage.repository.scope
    session = found.oauthlib(client)
    link = client.prepare_request_uri(found["device_authorization_endpoint"], scope=[scope])
    address, _, form = link.partition("?")
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    told = session.post(address, form, headers=headers, withhold_token=True).json()
    browser.connect_device(told["verification_uri_complete"])
    token = session.fetch_token(found["token_endpoint"], include_client_id=True, device_code=told["device_code"])
    assert token["refresh_token"]
    assert found.opens_repository(session)

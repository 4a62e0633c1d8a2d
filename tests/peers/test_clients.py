"""Other people's OAuth clients and feed readers agree with us, over real sockets and TLS."""

import shutil
import ssl
import subprocess

import feedparser
import pytest
import requests
from authlib.integrations.httpx_client import OAuth2Client
from authlib.integrations.requests_client import OAuth2Session as AuthlibSession
from oauthlib.oauth2 import InvalidGrantError, LegacyApplicationClient
from requests_oauthlib import OAuth2Session

from tests.scenes import Served, fulltext

pytestmark = pytest.mark.peers


def test_requests_oauthlib_gets_uses_and_refreshes_a_token(served: Served) -> None:
    site, world = served.site, served.site.world
    session = OAuth2Session(client=LegacyApplicationClient(world.client_id, scope=[world.scope]))
    session.verify, session.trust_env = str(served.ca_file), False
    token = session.fetch_token(
        served.base + site.login,
        username=world.reader.id,
        password=world.reader.password,
        client_id=world.client_id,
        include_client_id=True,
    )
    assert token["token_type"] == "Bearer"
    assert session.get(served.base + site.repository).status_code == 200
    refreshed = session.refresh_token(served.base + site.login, client_id=world.client_id)
    assert refreshed["access_token"] != token["access_token"]
    assert refreshed["refresh_token"] == token["refresh_token"], "the client keeps the one it has"
    assert session.get(served.base + site.repository).status_code == 200


def test_requests_oauthlib_reads_our_refusal(served: Served) -> None:
    world = served.site.world
    session = OAuth2Session(client=LegacyApplicationClient(world.client_id, scope=[world.scope]))
    session.verify, session.trust_env = str(served.ca_file), False
    with pytest.raises(InvalidGrantError, match=r"."):
        session.fetch_token(
            served.base + served.site.login,
            username=world.outsider.id,
            password=world.outsider.password,
            client_id=world.client_id,
            include_client_id=True,
        )


@pytest.mark.parametrize("way", ["client_secret_basic", "client_secret_post"])
def test_authlib_authenticates_a_confidential_client(served: Served, way: str) -> None:
    site, world = served.site, served.site.world
    session = AuthlibSession(
        world.confidential_id, world.confidential_secret, scope=world.scope, token_endpoint_auth_method=way
    )
    session.verify, session.trust_env = str(served.ca_file), False
    address = served.base + site.login
    token = session.fetch_token(
        address, username=world.reader.id, password=world.reader.password, grant_type="password"
    )
    assert session.get(served.base + site.repository).status_code == 200
    refreshed = session.refresh_token(address, refresh_token=token["refresh_token"])
    assert refreshed["access_token"] != token["access_token"]


def test_authlib_over_httpx_is_a_public_client(served: Served) -> None:
    site, world = served.site, served.site.world
    with OAuth2Client(
        world.client_id,
        scope=world.scope,
        token_endpoint_auth_method="none",
        verify=ssl.create_default_context(cafile=served.ca_file),
    ) as client:
        client.fetch_token(served.base + site.login, username=world.reader.id, password=world.reader.password)
        assert client.get(served.base + site.repository).status_code == 200


def test_feedparser_reads_our_feed(served: Served) -> None:
    site = served.site
    word = site.world.word()
    name = f"{word} <é> & “quotes” \U0001f5c4"
    made = site.create(name, f"text with {word} in it".encode())
    site.world.catch_up()
    answer = requests.post(
        f"{served.base}{site.search_address}?include-total=true",
        data=site.aql(fulltext(word)).encode(),
        headers={"Content-Type": "application/xml", "Accept": "application/xml"} | site.bearer(),
        verify=str(served.ca_file),
        timeout=30,
    )
    assert answer.status_code == 200
    feed = feedparser.parse(answer.content)
    assert not feed.bozo, feed.get("bozo_exception")
    assert feed.version == "atom10"
    (entry,) = feed.entries
    assert entry.id == made
    assert word in entry.title
    assert "“quotes” \U0001f5c4" in entry.title
    assert entry.author == site.world.writer.id
    assert word in entry.summary
    assert entry.updated_parsed is not None


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl_trusts_the_first_start_ca_and_sees_the_headers(served: Served) -> None:
    site, world = served.site, served.site.world
    token = site.issue(world.reader)["access_token"]

    def curl(*arguments: str) -> str:
        return subprocess.run(
            ["curl", "-sS", "-D", "-", "-o", "/dev/null", "--cacert", str(served.ca_file), *arguments],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout.lower()

    seen = curl("-X", "DELETE", f"{served.base}{site.oauth}/{token}")
    assert " 204" in seen.splitlines()[0]
    for header in ("origin", "methods", "headers", "max-age"):
        assert f"access-control-{'allow-' if header != 'max-age' else ''}{header}:" in seen
    assert "strict-transport-security:" in seen
    assert "x-content-type-options: nosniff" in seen
    assert "x-request-id:" in seen
    assert "www-authenticate: bearer" in curl(f"{served.base}{site.search_address}?q=x")

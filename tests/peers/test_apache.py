"""Debian's mod_auth_openidc in an Apache of our own: pages for people whom the directory signs in, and an address for
tokens about which the directory is asked.
"""

import json
import os
import re
import shutil
import ssl
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from muniment.directory.entries import entries
from muniment.directory.oauth import sessions
from muniment.ground import certificates, clock
from tests.peers.chromium import answer, chromium, fresh_page, sign_in
from tests.peers.stage import EMAIL, Client, Stage
from tests.servers import free_port
from tests.waiting import until

APACHE = Path("/usr/sbin/apache2")
MODULES = Path("/usr/lib/apache2/modules")

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.only("sqlite"),
    pytest.mark.browser,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(
        not (MODULES / "mod_auth_openidc.so").exists(),
        reason="mod_auth_openidc is absent: apt-get install libapache2-mod-auth-openidc",
    ),
]

LOADED = (
    *("mpm_event", "authn_core", "authz_core", "authz_user", "auth_openidc"),
    *("dir", "filter", "include", "mime", "socache_shmcb", "ssl"),
)

CONFIGURATION = """
ServerRoot "{folder}"
DefaultRuntimeDir "{folder}"
PidFile "{folder}/pid"
ErrorLog "{folder}/log"
ServerName 127.0.0.1
Listen 127.0.0.1:{port} https
SSLEngine On
SSLCertificateFile "{tls}/server.pem"
SSLCertificateKeyFile "{tls}/server-key.pem"
DocumentRoot "{folder}/pages"
DirectoryIndex index.html
TypesConfig /dev/null
AddType text/html .html
<Directory "{folder}/pages">
  Options +Includes
  SetOutputFilter INCLUDES
  Require all granted
</Directory>

OIDCProviderMetadataURL {issuer}/.well-known/openid-configuration
OIDCClientID "{client.id}"
OIDCClientSecret "{client.secret}"
OIDCRedirectURI {base}/private/callback
OIDCCryptoPassphrase "{passphrase}"
OIDCScope "openid profile email"
OIDCPKCEMethod S256
OIDCRemoteUserClaim preferred_username
OIDCPassClaimsAs environment
OIDCInfoHook access_token refresh_token id_token userinfo
OIDCSSLValidateServer On
OIDCCABundlePath "{folder}/ca.pem"
OIDCHTTPTimeoutLong 60
OIDCHTTPTimeoutShort 60

OIDCOAuthIntrospectionEndpoint {issuer}/oauth2/introspect
OIDCOAuthIntrospectionEndpointAuth client_secret_basic
OIDCOAuthTokenIntrospectionInterval -1
OIDCOAuthClientID "{api.id}"
OIDCOAuthClientSecret "{api.secret}"
OIDCOAuthRemoteUserClaim username
OIDCOAuthSSLValidateServer On

<Location "/private">
  AuthType openid-connect
  Require valid-user
</Location>
<Location "/fresh">
  AuthType openid-connect
  Require valid-user
  OIDCRefreshAccessTokenBeforeExpiry 86400 logout_on_error
</Location>
<Location "/api">
  AuthType oauth20
  Require valid-user
</Location>
"""
"""Whoever asks for "/fresh" gets their token refreshed, as if it were always about to expire."""

PAGE = """<!doctype html>
<title>A page behind the directory</title>
<link rel="icon" href="data:,">
<h1>Welcome, <!--#echo var="REMOTE_USER" --></h1>
<p>Your address is <!--#echo var="OIDC_CLAIM_email" -->.</p>
"""


class Apache(NamedTuple):
    """The web server, and its client at the directory."""

    base: str
    client: Client
    certificate: Path
    http: httpx.Client

    @property
    def callback(self) -> str:
        """The address of the module itself."""
        return f"{self.base}/private/callback"


@pytest.fixture(scope="module")
def apache(stage: Stage) -> Iterator[Apache]:
    port = free_port()
    base = f"https://127.0.0.1:{port}"
    client = stage.client("Apache", secret=True, redirect_urls=(f"{base}/private/callback",), rotates=True)
    # Below pytest's own folders the other user, as whom Apache serves, can read nothing.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        tls = certificates.ensure(folder / "tls", ["127.0.0.1"], clock.now())
        shutil.copy(stage.ca_file, folder / "ca.pem")
        (folder / "ca.pem").chmod(0o644)
        for place in ("", "private", "fresh", "api"):
            (folder / "pages" / place).mkdir(parents=True, exist_ok=True)
            (folder / "pages" / place / "index.html").write_text(PAGE)
        loads = [f"LoadModule {each}_module {MODULES}/mod_{each}.so\n" for each in LOADED]
        other_user = "User www-data\nGroup www-data\n" if os.geteuid() == 0 else ""
        told = {"folder": folder, "port": port, "tls": folder / "tls", "base": base, "issuer": stage.issuer}
        told |= {"client": client, "api": stage.opaque, "passphrase": os.urandom(16).hex()}
        configuration = folder / "apache.conf"
        configuration.write_text("".join(loads) + other_user + CONFIGURATION.format(**told))
        process = subprocess.Popen([APACHE, "-f", configuration, "-DFOREGROUND"])
        log = folder / "log"
        trusted = ssl.create_default_context(cafile=tls.ca_file)
        with httpx.Client(base_url=base, verify=trusted, timeout=60, trust_env=False) as http:
            try:
                until(lambda: answers(http) or process.poll() is not None)
                assert process.poll() is None, log.read_text()
                yield Apache(base, client, tls.cert_file, http)
            finally:
                process.terminate()
                process.wait(60)
                print(log.read_text())


def answers(http: httpx.Client) -> bool:
    """Whether a server listens there."""
    try:
        return http.get("/").status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture(scope="module")
def browser(stage: Stage, apache: Apache) -> Iterator[Browser]:
    with chromium(stage.world.installation.tls / "server.pem", apache.certificate) as opened:
        yield opened


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with fresh_page(browser) as opened:
        yield opened


def living(stage: Stage, apache: Apache) -> int:
    """Count the grants that the module has."""
    with stage.world.directory_db.read() as cx:
        return len(sessions.of_client(cx, entries.find_client(cx, apache.client.id), stage.world.clock()))


def end(stage: Stage, apache: Apache) -> None:
    """Let an administrator end what the module has."""
    with stage.world.directory_db.begin() as cx:
        assert sessions.end_of(cx, entries.find_client(cx, apache.client.id), stage.world.clock()).grants


def known(page: Page, apache: Apache) -> dict[str, Any]:
    """What the module knows of who is signed in, by its own address for that."""
    page.goto(f"{apache.callback}?info=json")
    told: dict[str, Any] = json.loads(page.inner_text("body"))
    return told


def test_a_page_behind_apache_knows_who_signed_in_until_they_sign_out(stage: Stage, apache: Apache, page: Page) -> None:
    welcome = page.get_by_role("heading", name=f"Welcome, {stage.person.id}")
    page.goto(f"{apache.base}/private/")
    sign_in(page, stage.person, apache.client.id)
    expect(page).to_have_url(f"{apache.base}/private/")
    expect(welcome).to_be_visible()
    expect(page.get_by_text(f"Your address is {EMAIL}.")).to_be_visible()
    told = known(page, apache)
    assert told["id_token"].items() >= {"iss": stage.issuer, "aud": apache.client.id, "amr": ["pwd"]}.items()
    assert told["userinfo"].items() >= {"sub": told["id_token"]["sub"], "email": EMAIL}.items()

    # Who is signed in at the directory is signed in here, without a question while the grant lives.
    page.context.clear_cookies(name="mod_auth_openidc_session")
    page.goto(f"{apache.base}/private/")
    expect(welcome).to_be_visible()

    before = living(stage, apache)
    page.goto(f"{apache.callback}?logout={quote(apache.base + '/', safe='')}")
    expect(page).to_have_url(f"{apache.base}/")
    expect(welcome).not_to_be_visible()
    assert living(stage, apache) == before - 1
    end(stage, apache)
    page.goto(f"{apache.base}/private/")
    answer(page, apache.client.id)
    expect(welcome).to_be_visible()
    end(stage, apache)


def test_a_grant_that_ends_ends_the_session_of_the_module_with_its_next_refresh(
    stage: Stage, apache: Apache, page: Page
) -> None:
    welcome = page.get_by_role("heading", name=f"Welcome, {stage.person.id}")
    page.goto(f"{apache.base}/private/")
    sign_in(page, stage.person, apache.client.id)
    expect(welcome).to_be_visible()
    seen = [known(page, apache)]
    for _ in range(2):
        page.goto(f"{apache.base}/fresh/")
        expect(welcome).to_be_visible()
        seen.append(known(page, apache))
    assert len({told["access_token"] for told in seen}) == 3
    assert len({told["refresh_token"] for told in seen}) == 3

    end(stage, apache)
    back = quote(apache.base + "/", safe="")
    page.goto(f"{apache.callback}?refresh={back}&access_token={seen[-1]['access_token']}")
    expect(page).to_have_url(f"{apache.base}/?error_code=refresh_failed")
    page.goto(f"{apache.base}/fresh/")
    expect(page.get_by_text("Logged Out")).to_be_visible()
    page.goto(f"{apache.base}/fresh/")
    answer(page, apache.client.id)
    expect(welcome).to_be_visible()
    end(stage, apache)


def test_a_person_who_allows_nothing_is_not_let_in(stage: Stage, apache: Apache, page: Page) -> None:
    page.goto(f"{apache.base}/private/")
    sign_in(page, stage.person, apache.client.id, "Do not allow")
    # This release of the module takes an error with `iss` (RFC 9207 2) for a sign-in that others begin.
    expect(page.get_by_text("Error:")).to_be_visible()
    expect(page).to_have_url(re.compile(r"/private/callback\?.*error=access_denied"))
    page.goto(f"{apache.base}/private/")
    expect(page.get_by_role("button", name="Allow", exact=True)).to_be_visible()
    assert living(stage, apache) == 0


def test_an_address_for_tokens_asks_the_directory_at_each_request(stage: Stage, apache: Apache) -> None:
    trusted = ssl.create_default_context(cafile=stage.ca_file)
    with httpx.Client(verify=trusted, timeout=60, trust_env=False) as http:
        form = {"grant_type": "password", "client_id": stage.public.id}
        form |= {"username": stage.person.id, "password": stage.person.password}
        own, strange = (
            http.post(f"{stage.issuer}/oauth2/token", data=form | {"scope": each.scope}).json()["access_token"]
            for each in (stage.opaque, stage.rs256)
        )
        assert apache.http.get("/api/").status_code == 401
        assert apache.http.get("/api/", headers={"Authorization": f"Bearer {strange}"}).status_code == 401
        seen = apache.http.get("/api/", headers={"Authorization": f"Bearer {own}"})
        assert f"Welcome, {stage.person.id}" in seen.text
        ended = http.post(f"{stage.issuer}/oauth2/revoke", data={"client_id": stage.public.id, "token": own})
        assert ended.status_code == 200
        assert apache.http.get("/api/", headers={"Authorization": f"Bearer {own}"}).status_code == 401

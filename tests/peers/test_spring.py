"""Spring Security as it is published: an API that verifies tokens by keys or asks about them, people who sign in by a
browser, and a service that signs its assertions.
"""

import json
import os
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from joserfc.jwk import ECKey
from playwright.sync_api import Browser, Page, expect

from muniment.directory.entries import entries
from muniment.directory.oauth import sessions
from tests.environments import NoJar, maven_package
from tests.peers.chromium import chromium, fresh_page, sign_in
from tests.peers.stage import EMAIL, Client, Resource, Stage
from tests.servers import free_port
from tests.waiting import until

START_SECONDS = 300
PROJECT = Path(__file__).parent / "spring"

pytestmark = [pytest.mark.campaign, pytest.mark.only("sqlite"), pytest.mark.browser, pytest.mark.timeout(3000)]


class Spring(NamedTuple):
    """The application, and who it is to the directory: ``people`` sign in to it, ``service`` is itself."""

    base: str
    people: Client
    service: Client
    http: httpx.Client

    def status(self, path: str, token: str) -> int:
        """Say what an API of it answers to a token."""
        return self.http.get(path, headers={"Authorization": f"Bearer {token}"}).status_code

    def seen(self, path: str, token: str) -> dict[str, Any]:
        """Give whom an API of it sees behind a token."""
        answer = self.http.get(path, headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 200, answer.headers
        told: dict[str, Any] = answer.json()
        return told


@pytest.fixture(scope="module")
def jar() -> Path:
    """The application, built."""
    try:
        return maven_package(PROJECT)
    except NoJar as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def spring(stage: Stage, jar: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spring]:
    folder, port = tmp_path_factory.mktemp("spring"), free_port()
    base = f"http://127.0.0.1:{port}"
    people = stage.client("Spring's people", secret=True, redirect_urls=(f"{base}/login/oauth2/code/people",))
    key = ECKey.generate_key("P-256", {"kid": "spring", "alg": "ES256", "use": "sig"})
    service = stage.client("Spring's service", key=key, takes_endpoint_audience=True)
    (folder / "key.json").write_text(json.dumps(service.key))
    told = {
        "server.port": port,
        "issuer": stage.issuer,
        "audiences": f"{stage.rs256.address},{stage.es256.address}",
        "api.id": stage.opaque.id,
        "api.secret": stage.opaque.secret,
        "people.id": people.id,
        "people.secret": people.secret,
        "people.scope": stage.rs256.scope,
        "service.id": service.id,
        "service.scope": stage.opaque.scope,
        "service.key": folder / "key.json",
    }
    trust = ("-Djavax.net.ssl.trustStore=trust.p12", "-Djavax.net.ssl.trustStorePassword=changeit")
    imported = ("-importcert", "-noprompt", "-keystore", "trust.p12", "-storepass", "changeit", "-file", stage.ca_file)
    subprocess.run(["keytool", *imported], cwd=folder, check=True, timeout=60, capture_output=True)
    java = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", *trust, "-jar", str(jar)]
    log = folder / "log"
    with log.open("wb") as lines:
        process = subprocess.Popen(
            [*java, *(f"--{name}={value}" for name, value in told.items())],
            cwd=folder,
            stdout=lines,
            stderr=lines,
            env=os.environ | {"NO_PROXY": "127.0.0.1"},
        )
    try:
        started = "Started Application"
        until(lambda: started in log.read_text() or process.poll() is not None, seconds=START_SECONDS)
        assert process.poll() is None, log.read_text()[-5000:]
        with httpx.Client(base_url=base, timeout=120, trust_env=False) as http:
            yield Spring(base, people, service, http)
    finally:
        process.kill()
        process.wait(30)


@pytest.fixture(scope="module")
def browser(stage: Stage) -> Iterator[Browser]:
    with chromium(stage.world.installation.tls / "server.pem") as opened:
        yield opened


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with fresh_page(browser) as opened:
        yield opened


def ask(stage: Stage, address: str, **form: str) -> dict[str, Any]:
    """Send a form to the directory as the client ``public``, and give its answer."""
    trusted = ssl.create_default_context(cafile=stage.ca_file)
    sent = {"client_id": stage.public.id} | form
    answer = httpx.post(f"{stage.issuer}/oauth2/{address}", data=sent, verify=trusted, timeout=60, trust_env=False)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json() if answer.content else {}
    return told


def issued(stage: Stage, resource: Resource) -> dict[str, Any]:
    """Let the person sign in for a resource."""
    who = stage.person
    scope = f"openid email {resource.scope}"
    return ask(stage, "token", grant_type="password", username=who.id, password=who.password, scope=scope)


def subject(stage: Stage) -> str:
    """The person, as tokens name them."""
    return stage.world.entry(stage.person).uuid


@pytest.mark.parametrize("name", ["rs256", "es256"])
def test_a_signed_token_opens_the_api_that_it_is_for(stage: Stage, spring: Spring, name: str) -> None:
    resource: Resource = getattr(stage, name)
    seen = spring.seen("/signed", issued(stage, resource)["access_token"])
    assert seen["name"] == subject(stage)
    assert (
        seen["claims"].items()
        >= {
            "iss": stage.issuer,
            "aud": [resource.address],
            "client_id": stage.public.id,
            "email": EMAIL,
        }.items()
    )
    assert {"SCOPE_openid", "SCOPE_email"} <= set(seen["authorities"])


def test_no_other_token_opens_the_api_of_signed_tokens(stage: Stage, spring: Spring) -> None:
    right = issued(stage, stage.rs256)
    head, body, signature = right["access_token"].split(".")
    other = issued(stage, stage.resource("Spring's neighbour", "RS256"))["access_token"]
    forged = f"{head}.{other.split('.')[1]}.{signature}", f"{head}.{body}.{signature[::-1]}"
    for token in (other, issued(stage, stage.opaque)["access_token"], *forged):
        assert spring.status("/signed", token) == 401
    assert spring.status("/signed", right["access_token"]) == 200


def test_an_api_that_asks_learns_whose_token_it_is_and_at_once_that_it_has_ended(stage: Stage, spring: Spring) -> None:
    token = issued(stage, stage.opaque)["access_token"]
    seen = spring.seen("/asked", token)
    assert seen["name"] == subject(stage)
    assert seen["claims"].items() >= {"username": stage.person.id, "email": EMAIL, "active": True}.items()
    assert {"SCOPE_openid", "SCOPE_email"} <= set(seen["authorities"])
    for strange in (issued(stage, stage.rs256)["access_token"], issued(stage, stage.repository)["access_token"], "x"):
        assert spring.status("/asked", strange) == 401
    ask(stage, "revoke", token=token)
    assert spring.status("/asked", token) == 401


def test_an_api_that_verifies_by_keys_takes_an_ended_token_until_it_expires(stage: Stage, spring: Spring) -> None:
    with stage.world.clock.shift(-240):
        ended = issued(stage, stage.rs256)["access_token"]
    ask(stage, "revoke", token=ended)
    assert spring.status("/signed", ended) == 200
    with stage.world.clock.shift(-400):
        expired = issued(stage, stage.rs256)["access_token"]
    assert spring.status("/signed", expired) == 401


def test_a_service_signs_its_assertions_and_gets_tokens_for_itself(stage: Stage, spring: Spring) -> None:
    token = spring.http.get("/service").text
    assert spring.seen("/asked", token)["claims"].items() >= {"client_id": spring.service.id}.items()


def test_a_person_signs_in_and_the_application_acts_for_them_until_their_session_ends(
    stage: Stage, spring: Spring, page: Page
) -> None:
    page.goto(spring.base)
    sign_in(page, stage.person, spring.people.id)
    expect(page).to_have_url(f"{spring.base}/?continue")
    seen = shown(page)
    assert seen["name"] == stage.person.id
    assert (
        seen["claims"].items()
        >= {
            "iss": stage.issuer,
            "sub": subject(stage),
            "aud": [spring.people.id],
            "preferred_username": stage.person.id,
            "email": EMAIL,
            "amr": ["pwd"],
        }.items()
    )

    assert spring.status("/signed", seen["id_token"]) == 401

    tokens = [text(page, f"{spring.base}/token") for _ in range(2)]
    assert tokens[0] != tokens[1]
    assert {spring.seen("/signed", token)["name"] for token in tokens} == {subject(stage)}

    with stage.world.directory_db.begin() as cx:
        ended = sessions.end_of(cx, entries.find_client(cx, spring.people.id), stage.world.clock())
    assert ended.grants == 1
    told = [text(page, f"{spring.base}/token") for _ in range(2)]
    assert told == ["invalid_grant", "client_authorization_required"]


def test_a_person_who_allows_nothing_is_not_signed_in(stage: Stage, spring: Spring, page: Page) -> None:
    page.goto(spring.base)
    sign_in(page, stage.person, spring.people.id, button="Do not allow")
    expect(page).to_have_url(f"{spring.base}/login?error")
    expect(page.get_by_role("alert")).to_be_visible()
    page.goto(spring.base)
    expect(page.get_by_role("button", name="Allow", exact=True)).to_be_visible()


def text(page: Page, address: str) -> str:
    """What a page says."""
    page.goto(address)
    return page.inner_text("body")


def shown(page: Page) -> dict[str, Any]:
    """Whom the application shows."""
    told: dict[str, Any] = json.loads(page.inner_text("body"))
    return told

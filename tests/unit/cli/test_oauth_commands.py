"""Commands about how OAuth clients get tokens, about resources' tokens, and about the keys that sign."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from joserfc.jwk import ECKey

from muniment.cli import commands
from muniment.directory.entries import system
from muniment.installation.exit_codes import Exit
from tests.unit.cli.test_commands import QUICK, Muniment

URL = "https://app.example.org/oauth/client.json"
DOCUMENT: dict[str, Any] = {
    "client_id": URL,
    "client_name": "A tool",
    "redirect_uris": ["http://127.0.0.1/back", "https://app.example.org/back"],
    "grant_types": ["authorization_code", "refresh_token"],
    "response_types": ["code"],
    "token_endpoint_auth_method": "none",
}
KEYS = {"keys": [ECKey.generate_key("P-256").as_dict(private=False)]}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("oauth") / "data"
    assert commands.run(["--data", str(folder), *QUICK, "init"]) == 0
    assert commands.run(["--data", str(folder), *QUICK, "resource", "add", "An API"]) == 0
    return folder


@pytest.fixture
def muniment(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Muniment:
    shutil.copytree(made, tmp_path / "data")
    return Muniment(tmp_path / "data", capsys)


def settings(muniment: Muniment, name: str) -> dict[str, str]:
    rows = (line.split("\t") for line in muniment("client", "show", name).splitlines())
    return {row[0]: row[1] for row in rows}


def test_a_client_is_made_from_its_document(muniment: Muniment, tmp_path: Path) -> None:
    """draft-ietf-oauth-client-id-metadata-document 4: its URL is its client_id."""
    file = tmp_path / "client.json"
    file.write_text(json.dumps(DOCUMENT))
    assert muniment("client", "add", "--document", str(file)).strip() == URL
    assert f"{URL}\tpublic\tactive\t\tA tool\n" in muniment("client", "list")
    shown = settings(muniment, URL)
    assert shown["redirect_urls"] == "http://127.0.0.1/back, https://app.example.org/back"
    assert shown["denied_grants"] == "password, client_credentials, device_code, token_exchange"
    by_key = DOCUMENT | {"client_id": URL + "?2", "token_endpoint_auth_method": "private_key_jwt", "jwks": KEYS}
    file.write_text(json.dumps(by_key))
    muniment("client", "add", "--document", str(file))
    assert settings(muniment, URL + "?2")["authentication"] == "private_key_jwt"


@pytest.mark.parametrize(
    "changes",
    [
        {"client_id": "http://app.example.org/x"},
        {"client_id": "https://app.example.org"},
        {"client_id": "https://user@app.example.org/x"},
        {"client_id": URL + "#x"},
        {"client_id": None},
        {"redirect_uris": "https://x"},
        {"redirect_uris": [5]},
        {"token_endpoint_auth_method": "client_secret_basic"},
        {"token_endpoint_auth_method": "private_key_jwt"},
        {"token_endpoint_auth_method": "private_key_jwt", "jwks_uri": "https://x/"},
        {"client_id": "https://app.example.org/" + "x" * 255},
    ],
    ids=repr,
)
def test_nothing_is_fetched_and_a_bad_document_makes_no_client(
    muniment: Muniment, tmp_path: Path, changes: dict[str, Any]
) -> None:
    file = tmp_path / "client.json"
    file.write_text(json.dumps(DOCUMENT | changes))
    muniment("client", "add", "--document", str(file), code=Exit.REFUSED)
    assert "example.org" not in muniment("client", "list")
    file.write_bytes(b"[" * 100_000)
    muniment("client", "add", "--document", str(file), code=Exit.REFUSED)


def test_a_clients_name_has_up_to_255_characters_and_a_users_does_not(muniment: Muniment) -> None:
    name = "https://app.example.org/" + "x" * 231
    muniment("client", "add", name)
    assert name in muniment("client", "list")
    muniment("client", "add", name + "x", code=Exit.REFUSED)
    muniment("partition", "add", "staff")
    muniment("group", "add", "x" * 121 + "@staff", code=Exit.REFUSED)


def test_the_list_names_clients_that_may_do_what_is_advised_against(muniment: Muniment) -> None:
    """RFC 9700 2.1.1, 2.4"""
    for name in ("lax", "strict"):
        muniment("client", "add", name, "--confidential")
    muniment("client", "configure", "lax", "--pkce", "none")
    muniment("client", "configure", "strict", "--deny", "password")
    kinds = {line.split()[0]: " ".join(line.split()[1:]) for line in muniment("client", "list").splitlines() if line}
    assert kinds["lax"] == "confidential active neither PKCE nor nonce, password grant"
    assert kinds["strict"] == "confidential active"
    muniment("client", "configure", "lax", "--deny", "authorization_code")
    assert "neither PKCE" not in muniment("client", "list")


def test_a_client_is_configured(muniment: Muniment, tmp_path: Path) -> None:
    muniment("client", "add", "web")
    file = tmp_path / "keys.json"
    file.write_text(json.dumps(KEYS))
    muniment("client", "configure", "web", "--redirect", "https://a/", "--deny", "password", "--allow", "device_code")
    muniment("client", "configure", "web", "--pkce", "none", "--keys", str(file), "--default-resource", "An API")
    muniment("client", "configure", "web", "--may-administer", "--rotate", "always", "--impersonate")
    shown = settings(muniment, "web")
    assert shown.pop("default_resource") in muniment("resource", "list")
    assert shown == {
        "redirect_urls": "https://a/",
        "denied_grants": "password",
        "allow_impersonation": "True",
        "jwks": "set",
        "pkce": "none",
        "authentication": "private_key_jwt",
        "may_administer": "True",
        "rotates": "True",
    }
    for wrong in (["--pkce", "x"], ["--deny", "x"], ["--rotate", "x"], ["--default-resource", "x"]):
        muniment("client", "configure", "web", *wrong, code=Exit.REFUSED)


def test_a_new_secret_takes_the_place_of_a_key(muniment: Muniment, tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_text(json.dumps(KEYS))
    muniment("client", "add", "nightly", "--confidential")
    muniment("client", "configure", "nightly", "--keys", str(file))
    assert "nightly\tconfidential\t" in muniment("client", "list")
    assert len(muniment("client", "secret", "nightly").strip()) == 43
    assert settings(muniment, "nightly")["authentication"] == "secret"
    assert "nightly\tconfidential\t" in muniment("client", "list")
    muniment("client", "secret", "nightly", "--end-sessions")


def test_a_resource_says_what_its_tokens_are(muniment: Muniment) -> None:
    muniment("resource", "set", "An API", "--address", "https://api/", "--tokens", "ES256", "--token-seconds", "600")
    for wrong in (["--tokens", "HS256"], ["--token-seconds", "3601"], ["--address", "no URL"]):
        muniment("resource", "set", "An API", *wrong, code=Exit.REFUSED)
    muniment("resource", "set", "Directory Administration", "--tokens", "RS256", code=Exit.REFUSED)


def test_keys_are_rotated_without_a_restart(muniment: Muniment, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr("muniment.cli.directory.keys.time.sleep", waited.append)
    assert muniment("key", "list") == ""
    assert "sign from" in muniment("key", "rotate")
    first = muniment("key", "list").splitlines()
    assert {line.split("\t")[1] for line in first} == {"RS256", "ES256"}
    muniment("key", "rotate")
    assert len(muniment("key", "list").splitlines()) == 4
    assert waited == [2 * system.READ_AGAIN_SECONDS] * 2, "so that every server has read the next keys"
    assert "Ended: 0 grants, 0 tickets." in muniment("key", "rotate", "--now")
    assert len(waited) == 2

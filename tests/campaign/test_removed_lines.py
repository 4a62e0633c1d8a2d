"""Each attack on the authorization server is a test, and the line that stops it is named here: without it, in a copy of
the sources, the test is red.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
FAILED = 1
"""What pytest answers if a test failed, and not for a test that it does not find or cannot read."""

pytestmark = [pytest.mark.campaign, pytest.mark.timeout(600)]


class Removal(NamedTuple):
    """``line`` stands once in ``file``, below the directory; ``instead`` takes its place."""

    file: str
    line: str
    instead: str
    test: str


REMOVALS = (
    Removal(
        "oauth/access.py",
        "    require_some_resource(question)\n    resource, user",
        "    resource, user",
        "console/test_machine_grants.py::test_a_token_without_a_resource_is_good_for_userinfo_and_nothing_else",
    ),
    Removal(
        "oauth/scopes.py",
        "    _require_marked(settings, made, resource)\n",
        "",
        "unit/directory/oauth/test_scopes.py::test_only_a_marked_client_asks_for_the_administration",
    ),
    Removal(
        "oauth/grant_types/authorization_code.py",
        "        tokens.end_grant(cx, authorization.grant_id, now)\n",
        "",
        "console/test_codes.py::test_a_code_serves_once_and_a_second_use_ends_what_came_of_it",
    ),
    Removal(
        "oauth/grant_types/authorization_code.py",
        " or authorization.client_id != client.id:",
        ":",
        "console/test_codes.py::test_a_code_of_another_client_is_none",
    ),
    Removal(
        "oauth/grant_types/authorization_code.py",
        '        or parameters.get("redirect_uri", "") != authorization.redirect_address\n',
        "",
        "console/test_codes.py::test_a_code_is_bound_to_its_request",
    ),
    Removal(
        "oauth/codes.py",
        "        return challenge is None and verifier is None\n",
        "        return challenge is None\n",
        "console/test_codes.py::test_a_request_without_a_challenge_never_takes_a_verifier",
    ),
    Removal(
        "oauth/authorization.py",
        'to.settings.pkce if to.confidential else "required"',
        "to.settings.pkce",
        "console/test_codes.py::test_a_public_client_always_sends_a_challenge_and_a_challenge_is_always_asked_for",
    ),
    Removal(
        "oauth/redirects.py",
        "    if origin(address) is None:\n        return False\n",
        "",
        "unit/directory/oauth/test_redirects.py::"
        "test_even_if_it_is_registered_nobody_is_led_to_what_is_no_place_to_lead_to",
    ),
    Removal(
        "console/authorize.py",
        '    answer["iss"] = directory.issuer\n',
        "",
        "console/test_codes.py::test_the_answer_names_its_issuer_so_that_no_other_server_can_be_meant",
    ),
    Removal(
        "console/authorize.py",
        "    frame.check_csrf(cx, mark, ticket)\n",
        "",
        "console/test_authorize.py::test_a_forged_consent_gives_nothing",
    ),
    Removal(
        "oauth/device_authorization.py",
        "        or device.user_id not in (None, user.id)\n",
        "",
        "console/test_devices.py::test_a_code_that_one_user_has_typed_is_none_for_another",
    ),
    Removal(
        "oauth/device_authorization.py",
        "        device_codes.count_wrong(cx, options, user.id, now)\n",
        "",
        "console/test_devices.py::test_guesses_are_paused_and_a_right_code_does_not_end_the_count",
    ),
    Removal(
        "oauth/assertions.py",
        "    if cx.execute(added, row).first() is None:\n        raise InvalidClient(REFUSED)\n",
        "    cx.execute(added, row)\n",
        "console/test_machine_grants.py::test_an_assertion_is_taken_once",
    ),
    Removal(
        "oauth/grant_types/token_exchange.py",
        '    if state.grant.made == "token_exchange":\n        raise InvalidTokenRequest(_BAD_TOKEN)\n',
        "",
        "console/test_machine_grants.py::test_a_users_token_is_exchanged_by_who_holds_it_and_ends_with_it",
    ),
    Removal(
        "oauth/grant_types/refresh_token.py",
        "            tokens.end_grant(cx, locked_grant.grant.id, now)\n",
        "",
        "console/test_successors.py::test_a_later_use_ends_the_grant",
    ),
)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources, compiled."""
    copied = tmp_path_factory.mktemp("copy") / "src"
    shutil.copytree(ROOT / "src", copied, ignore=shutil.ignore_patterns("__pycache__"))
    return copied


def tried(copy: Path, tests: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    """Run tests in a process of their own, with the copied sources. Whoever tests a program has bytecode only of what
    nobody has changed: a file of one size may be written twice in one second.
    """
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", "--durations", "0"]
    environment = {**os.environ, "PYTHONPATH": f"{copy}{os.pathsep}{ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [*command, *(f"tests/{test}" for test in tests)],
        env={name: value for name, value in environment.items() if not name.startswith("PYTEST_")},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_with_every_line_each_test_is_green(copy: Path) -> None:
    """So a red one says something, and the copy is what is tested."""
    whole = tried(copy, sorted({removal.test for removal in REMOVALS}))
    assert whole.returncode == 0, whole.stdout
    (copy / "muniment/directory/oauth/redirects.py").rename(copy / "away")
    try:
        assert tried(copy, ["unit/directory/oauth/test_redirects.py"]).returncode != 0
    finally:
        (copy / "away").rename(copy / "muniment/directory/oauth/redirects.py")


@pytest.mark.parametrize("removal", REMOVALS, ids=lambda removal: removal.test.partition("::test_")[2])
def test_without_its_line_a_test_is_red(copy: Path, removal: Removal) -> None:
    file = copy / "muniment/directory" / removal.file
    text = file.read_text()
    assert text.count(removal.line) == 1, f"{removal.file} has another line now: {removal.line}"
    file.write_text(text.replace(removal.line, removal.instead))
    try:
        without = tried(copy, [removal.test])
    finally:
        file.write_text(text)
    assert without.returncode == FAILED, f"It stays green:\n{without.stdout}"
    assert "1 failed" in without.stdout, without.stdout

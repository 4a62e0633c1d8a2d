"""The files in examples are accepted by the programs they are for, and the README names what is offered."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from muniment.directory.oauth.grants import GRANTS
from muniment.installation import settings
from tests.house.sources import ROOT

EXAMPLES = ROOT / "examples"


def program(name: str) -> str:
    """The path of a program; without it the test is skipped. An administrator's programs need not be on the PATH."""
    path = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if path is None:
        pytest.skip(f"{name} is not installed")
    return path


def accepts(*command: str | Path) -> str:
    """Run a checking program, and give what it says; it must not refuse."""
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stderr


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    """systemd checks that the program is there; the unit's own path is that of an installation."""
    analyze = program("systemd-analyze")
    text = (EXAMPLES / "muniment.service").read_text()
    assert text.count("/opt/muniment/.venv/bin/muniment") == 1
    unit = tmp_path / "muniment.service"
    unit.write_text(text.replace("/opt/muniment/.venv/bin/muniment", sys.executable))
    assert "muniment.service" not in accepts(analyze, "verify", unit)


def test_the_unit_lets_the_process_that_reads_files_confine_itself() -> None:
    """Without user namespaces it stays on the network; without prctl it has no filter, and reads nothing."""
    lines = (EXAMPLES / "muniment.service").read_text().splitlines()
    assert "RestrictNamespaces=user net" in lines
    assert [line for line in lines if line.startswith("SystemCallFilter")] == ["SystemCallFilter=@system-service"]
    analyze = program("systemd-analyze")
    groups = subprocess.run(
        [analyze, "syscall-filter", "@system-service", "@process"], capture_output=True, text=True, check=True
    ).stdout
    assert {"@process", "prctl", "unshare", "clone"} <= set(groups.split())


def test_systemd_waits_longer_than_the_server_takes_to_stop() -> None:
    text = (EXAMPLES / "muniment.service").read_text()
    (seconds,) = re.findall(r"^TimeoutStopSec=(\d+)$", text, re.MULTILINE)
    assert int(seconds) >= settings.Settings().web.stop_seconds + 10


@pytest.mark.slow
def test_nginx_accepts_its_file(tmp_path: Path) -> None:
    nginx, openssl = program("nginx"), program("openssl")
    key, certificate = tmp_path / "key.pem", tmp_path / "server.pem"
    subject = ("-newkey", "rsa:2048", "-nodes", "-subj", "/CN=files.example.org")
    accepts(openssl, "req", "-x509", *subject, "-keyout", key, "-out", certificate)
    text = (EXAMPLES / "nginx.conf").read_text()
    for file, path in (
        ("/etc/ssl/private/files.example.org.key", key),
        ("/etc/ssl/files.example.org.pem", certificate),
        ("/var/lib/muniment/tls/ca.pem", certificate),
    ):
        assert text.count(file) == 1
        text = text.replace(file, str(path))
    (tmp_path / "site.conf").write_text(text)
    folders = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = " ".join(f"{name}_temp_path {tmp_path}/{name};" for name in folders)
    main = tmp_path / "nginx.conf"
    main.write_text(
        f"pid {tmp_path}/pid; error_log stderr; events {{}} http {{ access_log off; {temporary} include site.conf; }}"
    )
    said = accepts(nginx, "-t", "-q", "-c", main, "-p", tmp_path)
    assert "emerg" not in said


def test_logrotate_renames_the_file_of_events_and_makes_no_new_one(tmp_path: Path) -> None:
    """A file that logrotate made would belong to its user, and the server could not write to it."""
    logrotate = program("logrotate")
    events = tmp_path / "events.log"
    events.write_text('{"event":"sign-in"}\n')
    text = (EXAMPLES / "logrotate.conf").read_text()
    assert "copytruncate" not in re.sub("#.*", "", text)
    text = text.replace("/var/lib/muniment", str(tmp_path)).replace("    su muniment muniment\n", "")
    (tmp_path / "conf").write_text(text)
    (tmp_path / "conf").chmod(0o644)
    tmp_path.chmod(0o700)
    accepts(logrotate, "--force", "--state", tmp_path / "state", tmp_path / "conf")
    assert not events.exists()
    (rotated,) = tmp_path.glob("events.log-*")
    assert rotated.read_text() == '{"event":"sign-in"}\n'


@pytest.mark.parametrize("name", ["muniment.toml", "content-in-s3.toml", "names-of-the-field.toml"])
def test_the_settings_are_settings(name: str) -> None:
    settings.read(EXAMPLES / name, {}, file_must_exist=True)


def test_the_readme_names_the_grants_that_are_offered() -> None:
    text = " ".join((ROOT / "README.md").read_text("utf-8").split())
    named = re.search(r"offers the grants? (.*?) \(RFC", text)
    assert named
    assert re.findall(r"`([^`]+)`", named[1]) == list(GRANTS)


def test_a_page_links_only_what_is_there() -> None:
    missing = []
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
            path, _, fragment = link.partition("#")
            if "://" in link:
                continue
            target = page.parent / path if path else page
            if not target.exists() or (fragment and fragment not in _anchors(target)):
                missing.append(f"{page.name}: {link}")
    assert not missing


def _anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}

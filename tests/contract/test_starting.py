"""What somebody meets whose server cannot start: an address or a port that cannot be had, a key that does not fit."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from muniment.cli import commands
from muniment.installation.data_folder import DataFolder
from tests.unit.cli.test_commands import QUICK, Muniment


@pytest.fixture
def muniment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Muniment:
    folder = tmp_path / "first"
    assert commands.run(["--data", str(folder), *QUICK, "init"]) == 0
    return Muniment(folder, capsys)


@pytest.fixture
def busy_port() -> Iterator[int]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()[1]


@pytest.mark.parametrize(
    "arguments", [["serve", "--host", "192.0.2.1"], ["--set", "web.host=nowhere.invalid", "serve"]]
)
def test_an_address_that_is_not_of_this_machine_is_refused(muniment: Muniment, arguments: list[str]) -> None:
    muniment(*arguments, code=3)
    assert "--host" in muniment.err
    assert muniment.err.startswith("muniment: ")
    assert muniment.err.count("\n") == 1


def test_a_certificate_and_a_key_that_do_not_go_together_are_refused(muniment: Muniment, tmp_path: Path) -> None:
    other = tmp_path / "other"
    assert commands.run(["--data", str(other), *QUICK, "--set", "web.host=192.0.2.1", "serve"]) == 5
    assert commands.run(["--data", str(other), *QUICK, "init"]) == 0
    assert commands.run(["--data", str(other), *QUICK, "--set", "web.host=192.0.2.1", "serve"]) == 3
    key = muniment.data / "tls" / "server-key.pem"
    muniment("--set", "web.host=192.0.2.1", "serve", code=3)
    given = ("--set", f"web.certificate_file={other}/tls/server.pem", "--set", f"web.key_file={key}")
    muniment(*given, "serve", code=3)
    assert "its own unencrypted key" in muniment.err


def test_the_demo_makes_nothing_when_it_cannot_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], busy_port: int
) -> None:
    data, documents = tmp_path / "demo", tmp_path / "documents"
    documents.mkdir()
    muniment = Muniment(data, capsys)
    muniment("demo", "--docs", str(documents), "--port", str(busy_port), code=2)
    assert "DOCS=" in muniment.err
    assert not data.exists()
    (documents / "one.txt").write_text("one")
    muniment("demo", "--docs", str(documents), "--port", str(busy_port), code=4)
    assert "another with --port" in muniment.err
    assert not data.exists()


def test_the_demo_leaves_the_values_of_a_running_server_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = tmp_path / "demo.json"
    values.write_text("{}")
    (tmp_path / "demo.seed").write_bytes(bytes(32))
    muniment = Muniment(tmp_path, capsys)
    with DataFolder(tmp_path, None, []).lock():
        muniment("demo", code=4)
    assert "in use by process" in muniment.err
    assert values.exists()


def test_the_demo_refuses_other_folders_and_other_addresses(
    muniment: Muniment, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    muniment("demo", code=3)
    assert "DATA=" in muniment.err
    elsewhere = Muniment(tmp_path / "new", capsys)
    elsewhere("--set", "web.host=0.0.0.0", "demo", code=3)
    assert "loopback" in elsewhere.err
    assert not elsewhere.data.exists()

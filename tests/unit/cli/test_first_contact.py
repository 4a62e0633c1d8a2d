"""What somebody meets who does not know the program yet: each mistake is answered by what to do about it."""

import errno
import re
import sqlite3
from pathlib import Path

import pytest
import sqlalchemy.exc

from muniment.cli import commands
from muniment.installation.exit_codes import Exit, as_failure
from tests.unit.cli.test_commands import QUICK, Muniment

ADMINISTRATORS = "administrators@directory.admin"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("first") / "data"
    assert commands.run(["--data", str(folder), *QUICK, "init"]) == 0
    return folder


@pytest.fixture
def muniment(made: Path, capsys: pytest.CaptureFixture[str]) -> Muniment:
    return Muniment(made, capsys)


@pytest.mark.slow
def test_a_command_alone_shows_its_help(muniment: Muniment) -> None:
    for arguments in ([], ["user"], ["index"]):
        muniment(*arguments, code=2)
        assert "Usage: muniment" in muniment.err or "Missing command" in muniment.err
        assert "muniment: Usage" not in muniment.err


@pytest.mark.slow
def test_it_says_which_release_it_is(muniment: Muniment) -> None:
    assert re.fullmatch(r"muniment \d+\.\d+\S*, Python 3\.\d+\.\d+\S*\n", muniment("--version"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "to_do"),
    [
        (["user", "add"], 2, "See 'muniment user add --help'."),
        (["init", "more"], 2, "(more). See 'muniment init --help'."),
        (["user", "ad"], 2, "Did you mean 'add'?"),
        (["serve", "--port", "99999"], 2, "'--port'"),
        (["serve", "--workers", "0"], 2, "'--workers'"),
        (["--set", "web.certificate_file=/none", "--set", "web.key_file=/none", "serve"], 3, "PEM"),
        (["user", "show", "ada"], 3, "'muniment user list PARTITION'"),
        (["group", "members", "none@staff"], 3, "'muniment group list PARTITION'"),
        (["client", "secret", "none"], 3, "'muniment client list'"),
        (["user", "list", "people"], 3, "'muniment partition list'"),
        (["resource", "members", "none"], 3, "'muniment resource list'"),
        (["type", "add", "memo", "--parent", "none"], 3, "'muniment type list'"),
        (["acl", "remove", "none"], 3, "'muniment acl list'"),
        (["acl", "add", "none", "ada@staff=FLY"], 2, "NONE, BROWSE, READ"),
        (["index", "check", "-r", "none"], 3, "'muniment repository list'"),
        (["search", "word"], 5, "'muniment serve'"),
        (["index", "check"], 5, "'muniment serve'"),
        (["search", "word", "--ca-file", "/none"], 2, "--ca-file"),
        (["search", "word", "--ca-file", __file__, "--user", "a@b"], 1, "--ca-file"),
    ],
)
def test_a_mistake_is_answered_by_what_to_do(
    muniment: Muniment, arguments: list[str], code: int, to_do: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUNIMENT_PASSWORD", "any")
    muniment(*arguments, code=code)
    assert to_do in muniment.err
    assert muniment.err.startswith("muniment: ")
    assert muniment.err.count("\n") == 1


@pytest.mark.parametrize(
    ("number", "to_do"), [(errno.EACCES, "Let this user"), (errno.EROFS, "read-only"), (errno.ENOSPC, "Make room")]
)
def test_what_a_disk_refuses_is_said_with_what_to_do(number: int, to_do: str) -> None:
    failure = as_failure(OSError(number, "No.", "/data/file"))
    assert failure is not None
    assert failure.sentence.startswith("/data/file: ")
    assert to_do in failure.sentence


@pytest.mark.parametrize(
    ("reason", "to_do"),
    [
        ("database or disk is full", "Make room"),
        ("attempt to write a readonly database", "Let this user write"),
        ("unable to open database file", "Let this user write"),
        ("connection refused", "Check the address"),
    ],
)
def test_what_a_database_refuses_is_said_with_what_to_do(reason: str, to_do: str) -> None:
    failure = as_failure(sqlalchemy.exc.OperationalError("SELECT secret", {}, sqlite3.OperationalError(reason)))
    assert failure is not None
    assert reason in failure.sentence
    assert to_do in failure.sentence
    assert "SELECT" not in failure.sentence


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ["user", "add", "ada@staff", "--random"],
        ["migrate"],
        ["serve"],
        ["import", "."],
        ["object", "rm", "0937c1d2e3f4a5b6"],
        ["wastebasket", "purge", "--all"],
        ["content", "check"],
        ["repository", "remove", "main"],
        ["backup", "copy"],
        ["restore", "copy"],
    ],
    ids=" ".join,
)
def test_a_folder_that_is_no_data_folder_stays_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    Muniment(tmp_path, capsys)(*arguments, code=Exit.REFUSED if arguments[0] == "restore" else Exit.NOT_READY)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_last_administrator_stays(muniment: Muniment) -> None:
    last = "admin@directory.admin"
    for taken in (
        ["user", "remove", last],
        ["user", "set", last, "--disable"],
        ["user", "set", last, "--lock"],
        ["group", "remove-member", ADMINISTRATORS, last],
        ["resource", "remove-member", "Directory Administration", ADMINISTRATORS],
    ):
        muniment(*taken, code=Exit.REFUSED)
        assert "'muniment group add-member'" in muniment.err
    assert "state\tactive" in muniment("user", "show", last)
    assert ADMINISTRATORS in muniment("resource", "members", "Directory Administration")

    muniment("partition", "add", "board")
    muniment("group", "add", "chairs@board")
    muniment("group", "add-member", ADMINISTRATORS, "chairs@board")
    muniment("user", "remove", last, code=Exit.REFUSED)
    muniment("user", "add", "bea@board", "--random")
    muniment("group", "add-member", "chairs@board", "bea@board")
    muniment("user", "set", last, "--disable")
    muniment("group", "remove", "chairs@board", code=Exit.REFUSED)
    muniment("user", "set", last, "--enable")
    muniment("group", "remove", "chairs@board")

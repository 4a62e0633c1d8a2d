"""Commands in this process: what they print, how they leave, what they refuse in one line."""

import io
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

from muniment.cli import commands
from muniment.database.connections import Database, Unwritable
from muniment.directory.entries import credentials, editing, entries
from muniment.directory.options import DirectoryNames
from muniment.ground.clock import SECOND, now, timestamp
from muniment.installation import exit_codes
from muniment.installation.data_folder import DataFolder

QUICK = ["--set", "directory.hash_memory_kib=8192", "--set", "directory.hash_passes=1"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("commands") / "data"
    assert commands.run(["--data", str(folder), *QUICK, "init"]) == 0
    return folder


@pytest.fixture
def muniment(data: Path, capsys: pytest.CaptureFixture[str]) -> "Muniment":
    return Muniment(data, capsys)


class Muniment:
    """Runs commands and keeps what they print."""

    def __init__(self, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.data = data
        self._capsys = capsys
        self.err = ""

    def __call__(self, *arguments: str, code: int = 0) -> str:
        self._capsys.readouterr()
        left = commands.run(["--data", str(self.data), *QUICK, *arguments])
        printed = self._capsys.readouterr()
        self.err = printed.err
        assert left == code, printed.out + printed.err
        return printed.out


@pytest.mark.slow
def test_init_makes_a_folder_for_its_owner_alone_and_shows_the_password_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    muniment = Muniment(tmp_path / "new", capsys)
    first = muniment("init")
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    password = re.search(r"^Password: +(\S{16,})$", first, re.MULTILINE)
    assert password
    again = muniment("init")
    assert "Password" not in again
    assert "initialised before" in again
    for file in (tmp_path / "new").rglob("*"):
        assert not file.is_file() or password[1].encode() not in file.read_bytes()
    assert "activated" in muniment("resource", "list")
    assert muniment("repository", "list").startswith("main\t")


@pytest.mark.slow
def test_users_come_and_go(muniment: Muniment) -> None:
    muniment("partition", "add", "staff")
    password = muniment("user", "add", "ada@staff", "--random", "--description", "The first").strip()
    assert len(password) >= 16
    muniment("group", "add", "writers@staff")
    muniment("group", "add", "all@staff")
    muniment("group", "add-member", "writers@staff", "ada@staff")
    muniment("group", "add-member", "all@staff", "writers@staff")
    shown = muniment("user", "show", "ada@staff")
    assert "group\tall@staff" in shown
    assert "state\tactive" in shown
    muniment("user", "set", "ada@staff", "--disable", "--lock")
    assert "state\tdisabled and locked" in muniment("user", "show", "ada@staff")
    muniment("user", "set", "ada@staff", "--enable", "--unlock")
    muniment("user", "set", "ada@staff", "--password-never-expires", "--must-change-password")
    muniment("user", "attribute", "ada@staff", "mail", "ada@example.org", "countess@example.org")
    assert "mail\tada@example.org\nmail\tcountess@example.org" in muniment("user", "show", "ada@staff")
    muniment("user", "attribute", "ada@staff", "mail")
    assert "mail" not in muniment("user", "show", "ada@staff")
    muniment("user", "attribute", "ada@staff", "accountDisabled", "true", code=3)
    muniment("group", "remove-member", "writers@staff", "ada@staff")
    assert "group" not in muniment("user", "show", "ada@staff")
    assert "ada@staff" in muniment("user", "list", "staff")
    muniment("user", "remove", "ada@staff")
    assert muniment("user", "list", "staff") == ""
    muniment("user", "show", "ada@staff", code=3)
    assert muniment.err.count("\n") == 1


@pytest.mark.slow
def test_a_pause_is_shown_and_ended_and_a_lock_stays(muniment: Muniment) -> None:
    """failures A5"""
    muniment("partition", "add", "paused")
    muniment("user", "add", "pia@paused", "--random")
    assert "known places\t0" in muniment("user", "show", "pia@paused")
    database = Database(f"sqlite:///{muniment.data / 'directory.db'}")
    until = (now() // SECOND + 600) * SECOND
    with database.begin() as cx:
        found = entries.find_user(cx, DirectoryNames(), "pia@paused")
        credentials.note_sign_in(cx, found.id, f'{{"":[10,{until}],"b1":[2,0]}}', f'{{"b1":{until}}}', until)
    database.close()
    muniment("user", "set", "pia@paused", "--disable")
    shown = muniment("user", "show", "pia@paused")
    assert f"wrong passwords\t10 elsewhere, paused until {timestamp(until)}\n" in shown
    assert "wrong passwords\t2 at a known place\n" in shown
    assert "known places\t1" in shown
    muniment("user", "unpause", "pia@paused")
    shown = muniment("user", "show", "pia@paused")
    assert "wrong passwords" not in shown
    assert "known places\t1" in shown
    assert "state\tdisabled" in shown
    muniment("user", "unpause", "nobody@paused", code=3)


@pytest.mark.slow
def test_a_password_comes_from_standard_input_never_from_an_argument(
    muniment: Muniment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("sesame opens\n"))
    muniment("user", "add", "ali@directory.admin", "--password-stdin")
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    muniment("user", "password", "ali@directory.admin", code=2)
    assert "--password-stdin" in muniment.err
    monkeypatch.setattr("sys.stdin", io.StringIO("sesame shuts\n"))
    muniment("user", "password", "ali@directory.admin", "--password-stdin", "--random", code=2)
    assert "--random" in muniment.err


@pytest.mark.slow
def test_units_lie_in_partitions_and_users_in_units(muniment: Muniment) -> None:
    muniment("partition", "add", "plant")
    location = muniment("unit", "add", "plant", "Works").strip()
    assert location.startswith("ou=Works,")
    muniment("user", "add", "bo@plant", "--in", location, "--random")
    assert f"location\tcn=bo,{location}" in muniment("user", "show", "bo@plant")
    muniment("user", "add", "bo@directory.admin", "--in", location, "--random", code=3)
    muniment("unit", "remove", location, code=3)
    muniment("user", "remove", "bo@plant")
    deeper = muniment("unit", "add", location, "Root").strip()
    listed = muniment("unit", "list", "plant")
    assert f"unit\t{location}\t" in listed
    assert f"unit\t{deeper}\t" in listed
    muniment("unit", "remove", deeper)
    muniment("unit", "remove", location)


@pytest.mark.slow
def test_lists_leave_nobody_out(muniment: Muniment) -> None:
    data_folder = DataFolder(muniment.data, None, [])
    with data_folder.database("directory") as database, database.begin() as cx:
        crowd = editing.add_partition(cx, data_folder.settings.directory.names, "crowd", data_folder.now)
        wings = [editing.add_unit(cx, crowd, wing, data_folder.now) for wing in ("East", "West")]
        for number in range(1001):
            editing.add_client(cx, f"app {number}", data_folder.now)
            editing.add_unit(cx, wings[number % 2], f"room {number // 2}", data_folder.now)
    assert len(re.findall("^app ", muniment("client", "list"), re.MULTILINE)) == 1001
    assert len(re.findall("ou=room ", muniment("unit", "list", "crowd"))) == 1001


@pytest.mark.slow
def test_clients_are_public_or_confidential(muniment: Muniment) -> None:
    assert muniment("client", "add", "phone") == ""
    assert len(muniment("client", "add", "desk", "--confidential").strip()) >= 16
    listed = muniment("client", "list")
    assert re.search(r"^phone\tpublic", listed, re.MULTILINE)
    assert re.search(r"^desk\tconfidential", listed, re.MULTILINE)
    muniment("client", "secret", "desk")
    assert muniment.err == ""
    muniment("client", "secret", "phone")
    assert "phone had no secret" in muniment.err
    muniment("client", "remove", "phone")
    assert "phone" not in muniment("client", "list")


@pytest.mark.slow
def test_a_resource_is_activated_once(muniment: Muniment) -> None:
    identifier = muniment("resource", "add", "The Big Archive").strip()
    assert muniment("resource", "activate", "The Big Archive").strip()
    muniment("resource", "activate", identifier, code=3)
    muniment("resource", "add-member", identifier, "directory.admin", "administrators@directory.admin")
    assert muniment("resource", "members", "The Big Archive").count("\n") == 2
    muniment("resource", "remove-member", "The Big Archive", "directory.admin")
    assert muniment("resource", "members", "The Big Archive").count("\n") == 1
    muniment("resource", "add", "The+Big+Archive", code=3)
    muniment("resource", "remove", "The Big Archive")


@pytest.mark.slow
def test_types_are_made_by_command_and_by_file(muniment: Muniment, tmp_path: Path) -> None:
    muniment("type", "add", "letter")
    muniment("type", "property", "letter", "pages", "integer")
    muniment("type", "property", "letter", "pages", "colour", code=2)
    muniment("type", "add", "letter", code=3)
    file = tmp_path / "types.toml"
    file.write_text('[types.memo]\nparent = "letter"\nproperties = { urgent = "boolean" }\n')
    assert muniment("type", "load", str(file)).splitlines() == ["type memo", "property memo.urgent"]
    assert muniment("type", "load", str(file)).strip() == "nothing new"
    listed = muniment("type", "list")
    assert re.search(r"^memo\tletter\turgent boolean", listed, re.MULTILINE)
    muniment("type", "load", str(tmp_path / "none.toml"), code=1)
    assert "none.toml" in muniment.err


@pytest.mark.slow
def test_acls_are_made_changed_and_removed(muniment: Muniment) -> None:
    muniment("acl", "add", "readers", "world=READ", "owner=delete")
    assert re.search(r"^readers\t.*owner=DELETE, world=READ", muniment("acl", "list"), re.MULTILINE)
    muniment("acl", "change", "readers", "world=BROWSE")
    assert "world=BROWSE" in muniment("acl", "list")
    muniment("acl", "change", "readers", "world:READ", code=2)
    muniment("acl", "remove", "readers")
    muniment("acl", "remove", "readers", code=3)


@pytest.mark.slow
def test_another_repository_has_a_resource_of_its_own(muniment: Muniment) -> None:
    identifier = muniment("repository", "add", "second").strip()
    assert f"second\t{identifier}" in muniment("repository", "list")
    assert "Documents of second" in muniment("resource", "list")
    muniment("repository", "add", "second", "--resource", "Another", code=3)
    assert "There is a repository 'second' already" in muniment.err
    muniment("repository", "add", "third", "--resource", "Another", "--resource-id", identifier, code=2)
    assert "Another" not in muniment("resource", "list")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["", "..", "a\udcff"])
def test_a_repository_that_nobody_could_name_is_not_made(muniment: Muniment, name: str) -> None:
    """The resource that would guard it is not made, either. The event of the refusal is written."""
    events = muniment.data / "events.log"
    before = len(events.read_text("utf-8").splitlines())
    for resource in ([], ["--resource", "Guard"]):
        muniment("repository", "add", name, *resource, code=3)
        assert muniment.err.startswith("muniment: A repository's name has 1 to 120 printable characters")
    assert "Guard" not in muniment("resource", "list")
    assert "Documents of .." not in muniment("resource", "list")
    assert len(events.read_text("utf-8").splitlines()) == before + 2


@pytest.mark.slow
def test_a_repository_has_a_language(muniment: Muniment) -> None:
    identifier = muniment("repository", "add", "briefe", "--language", "german").strip()
    assert f"briefe\t{identifier}\tGerman" in muniment("repository", "list")
    assert muniment("repository", "language", "briefe", "French") == "briefe: French\n"
    assert f"briefe\t{identifier}\tFrench" in muniment("repository", "list")
    assert muniment("repository", "language", "briefe") == "briefe: English\n"
    muniment("repository", "language", "briefe", "Klingon", code=2)
    assert "choose one of Arabic, Danish" in muniment.err
    muniment("repository", "language", "none", "German", code=3)


@pytest.mark.slow
def test_what_each_owner_keeps_is_listed_and_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    muniment = Muniment(tmp_path / "data", capsys)
    muniment("init")
    folder = tmp_path / "Papers"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.txt").write_text("x" * 10)
    muniment("import", "--no-wait", str(folder))
    (line,) = (line for line in muniment("repository", "usage").splitlines() if "@" in line)
    assert line.split()[-2:] == ["4", "30"], "three documents and their cabinet"
    database = Database(DataFolder(tmp_path / "data", None, []).installation.database_url("repository"))
    with database.begin() as cx:
        cx.exec_driver_sql("UPDATE usage SET bytes = bytes + 1")
    database.close()
    muniment("repository", "usage", code=1)
    assert "NOT SOUND" in muniment.err


@pytest.mark.slow
def test_the_index_says_that_there_is_none_before_an_agent_ran(
    initialise: Callable[[Path], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    muniment = Muniment(initialise(tmp_path / "data"), capsys)
    assert "no index yet" in muniment("index", "status")
    muniment("index", "check", code=5)
    assert "index agent" in muniment.err


def test_settings_are_shown_without_passwords(muniment: Muniment) -> None:
    shown = muniment("--set", "directory_database=postgresql://u:sesame@h/n", "settings")
    assert "web.port\t8443" in shown
    assert "sesame" not in shown


def test_the_settings_page_is_written(muniment: Muniment) -> None:
    assert muniment("settings", "--markdown").startswith("# Settings")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nonsense"], 2, "nonsense"),
        (["serve", "--prot", "1"], 2, "--prot"),
        (["--set", "web.prot=1", "settings"], 3, "web.port"),
        (["--config", "/none.toml", "settings"], 3, "/none.toml"),
        (["user", "show", "nobody@nowhere"], 3, "nowhere"),
        (["import", "/none"], 2, "/none"),
        (["search", "word", "-r", "none"], 3, "none"),
    ],
)
def test_an_error_is_a_sentence_and_never_a_trace(
    muniment: Muniment, arguments: list[str], code: int, said: str
) -> None:
    muniment(*arguments, code=code)
    assert said in muniment.err
    assert "Traceback" not in muniment.err


def test_a_data_folder_that_is_not_there_is_named_with_the_way_to_make_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    muniment = Muniment(tmp_path / "none", capsys)
    muniment("user", "list", "staff", code=5)
    assert f"--data {tmp_path / 'none'} init" in muniment.err


@pytest.mark.slow
def test_only_init_makes_the_databases_of_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    muniment = Muniment(tmp_path, capsys)
    for command in (["user", "list", "staff"], ["repository", "list"], ["migrate"]):
        muniment(*command, code=5)
        assert f"--data {tmp_path} init" in muniment.err
    assert not list(tmp_path.glob("*.db*"))
    (tmp_path / "directory.db").touch()
    for command in (["user", "list", "staff"], ["migrate"], ["backup", str(tmp_path / "copy")]):
        muniment(*command, code=5)
        assert "init' first" in muniment.err
    assert "Password:" in muniment("init")


def test_the_folder_of_one_half_says_that_the_other_runs_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    muniment = Muniment(tmp_path, capsys)
    muniment("--set", "halves=repository", "--set", "repository.tokeninfo_url=https://a.example/tokeninfo", "init")
    muniment("user", "list", "staff", code=5)
    assert "it is the folder of a repository alone" in muniment.err
    assert "init" not in muniment.err


@pytest.mark.slow
def test_a_damaged_database_is_named_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    muniment = Muniment(tmp_path / "data", capsys)
    muniment("init")
    (muniment.data / "directory.db").write_bytes(b"no database" * 1000)
    muniment("user", "list", "staff", code=1)
    assert "database is damaged: file is not a database" in muniment.err


def test_leading_options_may_stand_anywhere(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.run(["settings", "--data", str(data), "--set=web.port=7"]) == 0
    assert "web.port\t7\t" in capsys.readouterr().out


@pytest.mark.slow
def test_half_an_installation_keeps_to_its_half(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    alone = Muniment(tmp_path / "alone", capsys)
    alone("--set", "halves=directory", "init")
    assert not (tmp_path / "alone" / "repository.db").exists()
    alone("--set", "halves=directory", "repository", "list", code=3)
    assert "does not run here" in alone.err


@pytest.mark.parametrize(
    ("reason", "to_do"),
    [
        ("its disk is full", "Make room on that disk"),
        ("it is read-only", "Let this user write"),
        ("its disk reports an error", "Check that disk"),
    ],
)
def test_a_database_that_takes_no_writes_is_not_tried_again_in_a_moment(reason: str, to_do: str) -> None:
    failure = exit_codes.as_failure(Unwritable(f"The database cannot be written: {reason}."))
    assert failure is not None
    assert to_do in failure.sentence
    assert "in a moment" not in failure.sentence


@pytest.mark.parametrize(("reason", "to_do"), [("disk I/O error", "Make room"), ("database is locked", "Try again")])
def test_an_operator_of_sqlite_need_not_check_an_address(reason: str, to_do: str) -> None:
    error = sa.exc.DBAPIError.instance("PRAGMA", None, sqlite3.OperationalError(reason), sqlite3.Error)
    failure = exit_codes.as_failure(error)
    assert failure is not None
    assert to_do in failure.sentence
    assert "address" not in failure.sentence


def test_a_role_without_the_right_to_make_tables_is_told_so() -> None:
    error = psycopg.errors.InsufficientPrivilege("permission denied for schema public\nLINE 2")
    failure = exit_codes.as_failure(sa.exc.DBAPIError.instance("CREATE", None, error, psycopg.Error))
    assert failure is not None
    assert failure.code == exit_codes.Exit.REFUSED
    assert "permission denied for schema public. Let the role" in failure.sentence


@pytest.mark.slow
def test_a_character_that_the_output_cannot_show_ends_no_command(muniment: Muniment) -> None:
    muniment("acl", "add", "Zo\u00eb", "world=READ")
    script = "from muniment.cli import main; main()"
    told = subprocess.run(
        [sys.executable, "-c", script, "--data", str(muniment.data), "acl", "list"],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii:strict"},
    )
    assert told.returncode == 0
    assert "Zo\\xeb\t" in told.stdout
    muniment("acl", "remove", "Zo\u00eb")


@pytest.mark.slow
def test_log_lines_of_a_command_do_not_stand_among_what_it_prints(muniment: Muniment) -> None:
    command = [sys.executable, "-c", "from muniment.cli import main; main()", "--data", str(muniment.data)]
    told = subprocess.run([*command, "index", "rebuild"], check=False, capture_output=True, text=True)
    assert told.stdout == "main: rebuilt, true to position 0.0\n", told.stderr
    assert "rebuilt" in told.stderr


def test_every_module_of_commands_is_listed_with_the_names_that_it_has() -> None:
    for module, names in commands._MODULES.items():
        loaded = vars(import_module(f"muniment.cli.{module}"))
        assert {name.rpartition("_")[0] for name in loaded if name.endswith(("_command", "_commands"))} == {*names}
    program = commands.program()
    registered = {each.name for each in program.registered_commands} | {each.name for each in program.registered_groups}
    assert registered == {name for names in commands._MODULES.values() for name in names}


@pytest.mark.slow
def test_the_import_loads_no_web_server_and_no_other_command() -> None:
    program = "import sys; from muniment.cli import commands; commands.run(['import', '--help']); print(*sys.modules)"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    loaded = set(printed.splitlines()[-1].split())
    assert "muniment.cli.repository.importing" in loaded
    unneeded = {
        "starlette",
        "uvicorn",
        "httpx",
        "jinja2",
        "alembic",
        "muniment.app",
        "muniment.server",
        "muniment.installation.backups",
    }
    assert not unneeded & loaded
    others = {f"muniment.cli.{module}" for module in commands._MODULES} - {"muniment.cli.repository.importing"}
    assert not others & loaded


@pytest.mark.slow
def test_migrate_makes_the_missing_client_of_the_search_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A data folder of an earlier release has none, and then nobody could sign in to the page."""
    muniment = Muniment(tmp_path / "data", capsys)
    muniment("init")
    assert "muniment-search" not in muniment("migrate")
    muniment("client", "remove", "muniment-search", "--force")
    assert "muniment-search" not in muniment("client", "list")
    assert "muniment-search" not in muniment("--set", "repository.search_page=false", "migrate")
    assert "Made the client muniment-search" in muniment("migrate")
    assert "muniment-search" in muniment("client", "list")

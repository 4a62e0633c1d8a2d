"""Entries are renamed, moved, described and listed by commands; what would break an id is refused with the reason."""

import io
import json
import os
import pwd
import shutil
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from muniment.cli import commands
from muniment.database.connections import Database, directory_tables
from muniment.directory.entries import entries, resources
from muniment.directory.oauth import tokens
from muniment.directory.options import DirectoryNames
from muniment.ground import clock
from tests.unit.cli.test_commands import QUICK, Muniment


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("entries") / "data"
    assert commands.run(["--data", str(folder), *QUICK, "init"]) == 0
    assert commands.run(["--data", str(folder), *QUICK, "partition", "add", "staff"]) == 0
    return folder


@pytest.fixture
def muniment(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Muniment:
    shutil.copytree(made, tmp_path / "data")
    return Muniment(tmp_path / "data", capsys)


def events(muniment: Muniment) -> list[str]:
    lines = (muniment.data / "events.log").read_text("utf-8").splitlines()
    return [json.loads(line)["on"] for line in lines]


@pytest.mark.slow
def test_every_kind_of_entry_is_renamed_moved_and_described(muniment: Muniment) -> None:
    house, garden = (muniment("unit", "add", "staff", name).strip() for name in ("House", "Garden"))
    room = muniment("unit", "add", house, "Room").strip()
    muniment("user", "add", "ada@staff", "--in", room, "--random")
    muniment("group", "add", "readers@staff")
    muniment("client", "add", "phone")

    assert muniment("user", "rename", "ada@staff", "adele").strip() == "adele@staff"
    assert muniment("group", "rename", "readers@staff", "writers").strip() == "writers@staff"
    assert muniment("unit", "rename", room, "Hall").strip() == room.replace("Room", "Hall")
    moved = muniment("unit", "move", room.replace("Room", "Hall"), garden).strip()
    assert moved.startswith("ou=Hall,ou=Garden,")
    assert f"location\tcn=adele,{moved}" in muniment("user", "show", "adele@staff")
    assert muniment("user", "move", "adele@staff", "staff").startswith("cn=adele,ou=Root,")
    assert muniment("group", "move", "writers@staff", moved).startswith(f"cn=writers,{moved}")
    muniment("client", "rename", "phone", "telephone")
    muniment("partition", "add", "typo")
    muniment("partition", "rename", "typo", "visitors")
    muniment("resource", "add", "Archive")
    muniment("resource", "rename", "Archive", "The Archive")

    muniment("partition", "set", "visitors", "--description", "for a day")
    muniment("unit", "set", moved, "--description", "large")
    muniment("group", "set", "writers@staff", "--description", "they write")
    muniment("resource", "set", "The Archive", "--description", "old papers")
    assert "visitors\t\tfor a day\n" in muniment("partition", "list")
    assert f"unit\t{moved}\t\tlarge\n" in muniment("unit", "content", garden)
    assert muniment("unit", "content", moved) == "group\twriters@staff\t\tthey write\n"
    assert "user\tadele@staff\tactive\t\n" in muniment("unit", "content", "staff")
    assert "\tcreated\told papers\n" in muniment("resource", "list")
    assert muniment("client", "list").count("telephone") == 1
    assert {"user rename", "unit move", "client rename", "partition set"} <= set(events(muniment))


@pytest.mark.slow
def test_what_would_break_an_id_is_refused_with_the_reason(muniment: Muniment) -> None:
    muniment("user", "add", "ada@staff", "--random")
    muniment("acl", "add", "readers", "ada@staff=READ")
    for refused, reason in (
        (["user", "rename", "ada@staff", "adele"], "A repository knows ada@staff"),
        (["partition", "rename", "staff", "people"], "1 users end with this partition's name"),
        (["partition", "rename", "directory.admin", "bosses"], "users end with this partition's name"),
        (["group", "rename", "administrators@directory.admin", "bosses"], "built-in"),
        (["resource", "rename", "Directory Administration", "mine"], "the settings say"),
        (["user", "move", "ada@staff", "directory.admin"], "stays in its partition"),
        (["user", "move", "ada@staff", "administrators@directory.admin"], "partition"),
        (["unit", "content", "ada@staff"], "only units and partitions"),
    ):
        muniment(*refused, code=3)
        assert reason in muniment.err
        assert muniment.err.count("\n") == 1
    muniment("user", "add", "bob@staff", "--random")
    apart = ("--set", "halves=directory")
    muniment(*apart, "user", "rename", "bob@staff", "robert", code=3)
    assert "--force" in muniment.err
    muniment(*apart, "user", "rename", "bob@staff", "robert", "--force")


@pytest.mark.slow
def test_a_removed_client_is_taken_out_of_acls(muniment: Muniment) -> None:
    """So a later client of the name has none of its rights."""
    muniment("acl", "add", "machines", "scanner@OAuthClients=READ")
    muniment("client", "add", "Scanner")
    assert "1 ACLs named Scanner@OAuthClients" in muniment("client", "remove", "scanner")
    assert "scanner" not in muniment("acl", "list")


@pytest.mark.slow
def test_a_client_by_which_people_sign_in_to_a_repository_stays(muniment: Muniment) -> None:
    basic = ("--set", "repository.basic_client=Muniment-Basic")
    for options, name, setting in (
        (basic, "muniment-basic", "repository.basic_client"),
        ((), "muniment-search", "repository.search_page_client"),
    ):
        for refused in (
            ["client", "remove", name],
            ["client", "rename", name, "other"],
            ["user", "remove", f"{name}@OAuthClients", "--give-to", "admin@directory.admin"],
        ):
            muniment(*options, *refused, code=3)
            assert f"The setting {setting} names the client '{name}'" in muniment.err
            assert "--force" in muniment.err
        assert f"{name}\tpublic\tactive" in muniment("client", "list")
    muniment("client", "rename", "muniment-search", "Muniment-Search")
    muniment("--set", "repository.search_page=false", "client", "rename", "muniment-search", "search")
    muniment("client", "rename", "muniment-basic", "basic")
    muniment("--set", "repository.basic_client=basic", "client", "rename", "basic", "signing-in", "--force")
    muniment("--set", "repository.basic_client=signing-in", "client", "remove", "signing-in", "--force")
    assert "signing-in" not in muniment("client", "list")


@pytest.mark.slow
def test_what_a_command_decides_the_operator_decides(muniment: Muniment) -> None:
    muniment("user", "add", "ada@staff", "--random")
    muniment("user", "set", "ada@staff", "--disable")
    with closing(Database(f"sqlite:///{muniment.data / 'directory.db'}")) as database, database.read() as cx:
        table = directory_tables.tables["audit_events"]
        found = cx.execute(sa.select(*table.c["who", "place", "action"]).where(table.c.target == "ada@staff")).all()
    who = pwd.getpwuid(os.getuid()).pw_name
    assert found == [(who, "command line", "user made"), (who, "command line", "user changed")]


@pytest.mark.slow
def test_a_session_shows_the_whole_name_of_its_client(muniment: Muniment) -> None:
    muniment("user", "add", "ada@staff", "--random")
    muniment("client", "add", "scanner@hall")
    database = Database(f"sqlite:///{muniment.data / 'directory.db'}")
    with closing(database), database.begin() as cx:
        ada, client = entries.find_user(cx, DirectoryNames(), "ada@staff"), entries.find_client(cx, "scanner@hall")
        now, resource_id = clock.now(), resources.administration(cx).id
        tokens.open_grant(cx, ada.id, client.id, resource_id, now, now + 60 * clock.SECOND)
    (session,) = json.loads(muniment("user", "sessions", "ada@staff", "--json"))
    assert (session["user"], session["client"]) == ("ada@staff", "scanner@hall")


@pytest.mark.slow
def test_a_guard_that_was_renamed_stays_the_guard(muniment: Muniment) -> None:
    before = muniment("repository", "list")
    muniment("resource", "rename", "Documents of main", "The Papers")
    assert "guarded by the resource 'The Papers'" in muniment("init")
    assert muniment("repository", "list") == before
    assert "Documents of main" not in muniment("resource", "list")


@pytest.mark.slow
def test_groups_that_contain_each_other_are_named(muniment: Muniment) -> None:
    for group in ("board@staff", "chairs@staff"):
        muniment("group", "add", group)
    muniment("group", "add-member", "board@staff", "chairs@staff")
    assert muniment.err == ""
    muniment("group", "add-member", "chairs@staff", "board@staff")
    assert "chairs@staff and board@staff now contain each other" in muniment.err
    muniment("group", "add-member", "board@staff", "board@staff")
    assert "board@staff now contains itself" in muniment.err
    muniment("group", "admit", "board@staff", "board@staff", code=2)


@pytest.mark.slow
def test_an_accessor_whom_nobody_knows_is_named(muniment: Muniment) -> None:
    muniment("user", "add", "ada@staff", "--random")
    muniment("acl", "add", "readers", "ADA@staff=READ", "owner=DELETE", "world=READ")
    assert muniment.err == ""
    muniment("acl", "add", "others", "adda@staff=READ", "--strict", code=3)
    assert "'adda@staff'" in muniment.err
    assert "others" not in muniment("acl", "list")
    muniment("acl", "add", "others", "adda@staff=READ")
    assert "Warning: the directory knows no user and no group 'adda@staff'" in muniment.err
    muniment("acl", "change", "others", "nobody@nowhere=READ", "--strict", code=3)
    assert "adda@staff=READ" in muniment("acl", "list")
    muniment("acl", "change", "others", "nobody@nowhere=READ")
    assert "'nobody@nowhere'" in muniment.err


@pytest.mark.slow
def test_system_attributes_are_set_by_command(muniment: Muniment, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = muniment("system", "list")
    assert listed.startswith("directory.auth.EnforceSSL\t\ttrue or false\t")
    muniment("system", "set", "directory.auth.enforcessl", "no", code=3)
    assert "true or false" in muniment.err
    muniment("system", "set", "directory.auth.enforcessl", "false")
    assert "Warning: " in muniment.err
    assert "unencrypted" in muniment.err
    muniment("system", "set", "directory.auth.enforcessl", "true")
    assert muniment.err == ""
    muniment("system", "set", "ours", "secret-1", code=3)
    assert "--free" in muniment.err
    muniment("system", "set", "ours", "secret-1", "--free")
    assert "ours\tsecret-1\t\tNothing here reads it." in muniment("system", "list")
    assert "secret-1" not in (muniment.data / "events.log").read_text("utf-8"), "a value may be secret"
    muniment("system", "remove", "OURS")
    muniment("system", "remove", "ours", code=3)

    terminal = io.StringIO("n\n")
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", terminal)
    muniment("system", "set", "ours", "1", code=3)
    assert "ours" not in muniment("system", "list")


@pytest.mark.slow
def test_lists_are_printed_as_json_and_with_headings_on_request(muniment: Muniment) -> None:
    muniment("user", "add", "ada@staff", "--random", "--description", "a\x1b[2J [bold]")
    muniment("user", "attribute", "ada@staff", "mail", "a@b", "c@d")
    (ada,) = json.loads(muniment("user", "list", "staff", "--json"))
    assert ada == {"kind": "user", "name": "ada@staff", "state": "active", "description": "a\x1b[2J [bold]"}
    assert "\x1b" not in muniment("user", "list", "staff", "--json")
    shown = json.loads(muniment("user", "show", "ada@staff", "--json"))
    assert shown["mail"] == ["a@b", "c@d"]
    assert (shown["password"], shown["group"], shown["known places"]) == (True, [], 0)
    assert muniment("user", "list", "staff", "--header").splitlines()[0] == "Kind\tName\tState\tDescription"
    assert muniment("user", "show", "ada@staff", "--header").splitlines()[0] == "Attribute\tValue"
    for listing in (
        ["partition", "list"],
        ["unit", "list", "staff"],
        ["unit", "content", "staff"],
        ["group", "list", "directory.admin"],
        ["group", "members", "administrators@directory.admin"],
        ["user", "sessions", "ada@staff"],
        ["client", "list"],
        ["client", "sessions", "muniment-cli"],
        ["resource", "list"],
        ["resource", "members", "Documents of main"],
        ["system", "list"],
        ["repository", "list"],
        ["repository", "usage"],
        ["type", "list"],
        ["object", "list"],
        ["acl", "list"],
        ["index", "status"],
        ["settings"],
    ):
        rows = json.loads(muniment(*listing, "--json"))
        assert isinstance(rows, list)
        plain = muniment(*listing).splitlines()
        assert len(plain) == len(rows), listing
        heads = muniment(*listing, "--header").splitlines()[0].split("\t")
        assert not rows or list(rows[0]) == [head.lower().replace(" ", "_") for head in heads]
    (status,) = json.loads(muniment("index", "status", "--json"))
    assert (status["index"], status["position"], status["waiting"]) == ("no index yet", None, 0)

"""Removing a user tells what they own, or gives it to another; no namesake gets any of it (failures C8)."""

import multiprocessing
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import Engine

from muniment.cli import commands
from muniment.database.connections import Database
from muniment.installation.data_folder import DataFolder
from muniment.repository.bulk import ownership
from muniment.repository.store import repositories
from muniment.repository.store.change_log import changes
from muniment.repository.store.objects import inventory
from muniment.repository.store.objects.contents import usage
from muniment.repository.store.objects.decisions import creation
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.table import StoredObject
from muniment.repository.store.permissions import acls, name_keys
from muniment.repository.store.permissions.principals import Permission
from tests.unit.cli.test_commands import QUICK, Muniment

pytestmark = pytest.mark.slow

PATIENCE = 60


class StaffData(Muniment):
    """A data folder with partition staff, run by commands."""

    def __init__(self, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
        super().__init__(data, capsys)
        self.folder = DataFolder(data, None, [])
        self.run("init")
        self.run("partition", "add", "staff")

    def run(self, *arguments: str, code: int = 0) -> str:
        """Run a command, and give all that it prints."""
        return self(*arguments, code=code) + self.err

    def user(self, name: str) -> str:
        """Make a user, and give their id."""
        self.run("user", "add", f"{name}@staff", "--random")
        return f"{name}@staff"

    def database(self) -> Database:
        """Open the repository's database."""
        return Database(self.folder.installation.database_url("repository"))

    def keep(self, owner: str, *names: str) -> list[str]:
        """Make documents of an owner who made a request before."""
        acting = self.folder.acting_as(owner)
        with self.folder.database("repository") as database, database.begin() as cx:
            repository = repositories.find(cx, "main")
            wanted = [creation.NewObject("document", {"object_name": name}) for name in names]
            view = RepositoryView.read(cx, repository, acting)
            return [one.id for one in creation.create_all(cx, view, wanted, self.folder.now)]

    def acl(self, owner: str, name: str, **entries: Permission) -> None:
        """Make an ACL of an owner."""
        acting = self.folder.acting_as(owner)
        spelled = {f"{accessor}@staff": level for accessor, level in entries.items()}
        with self.folder.database("repository") as database, database.begin() as cx:
            acls.add(cx, repositories.find(cx, "main").id, name, acting, spelled, self.folder.now)

    def rows(self) -> dict[str, StoredObject]:
        """Give every object by name."""
        with self.folder.database("repository") as database, database.read() as cx:
            assert usage.usage_by_owner(cx) == inventory.amounts_by_owner(cx)
            return {one.name: one for one in inventory.next_objects(cx, repositories.find(cx, "main").id, 0, 10_000)}

    def key(self, user_id: str) -> str:
        """Give the key of whoever bears the name now."""
        with self.folder.database("repository") as database, database.begin() as cx:
            return ownership.key_of(cx, user_id, self.folder.identify, self.folder.now)

    def objects_given(self) -> list[str]:
        """Name the objects of whose new owner the change log tells, each as often as it does."""
        with self.folder.database("repository") as database, database.read() as cx:
            lines = changes.after(cx, repositories.find(cx, "main").id, changes.START, 10_000)
            return sorted(line.object_id for line in lines if line.kind == "owner")


@pytest.fixture
def office(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> StaffData:
    return StaffData(tmp_path / "data", capsys)


def test_removing_a_user_says_what_they_own_and_a_namesake_gets_nothing(office: StaffData) -> None:
    bob = office.user("bob")
    office.keep(bob, "one", "two")
    office.acl(bob, "friends")
    office.acl("admin@directory.admin", "readers", bob=Permission.READ)
    former = office.key(bob)
    printed = office.run("user", "remove", bob)
    assert "bob@staff owned 2 objects of 0 bytes, 1 ACLs, and 0 saved searches." in printed
    assert "--left-by bob@staff" in printed
    assert "1 ACLs named" in printed
    office.user("bob")
    assert office.key(bob) != former
    assert {one.owner_key for one in office.rows().values()} == {former}
    assert "bob@staff=READ" not in office.run("acl", "list")


def test_what_a_user_owns_is_given_away_before_they_go(office: StaffData) -> None:
    bob, eve = office.user("bob"), office.user("eve")
    ids = office.keep(bob, "one", "two", "three")
    office.keep(eve, "hers")
    office.acl(bob, "friends")
    before = office.rows()
    printed = office.run("user", "remove", bob, "--give-to", eve)
    assert "Given to eve@staff: main: 3 objects, 1 ACLs" in printed
    after = office.rows()
    assert {one.owner for one in after.values()} == {eve}
    assert {one.owner_key for one in after.values()} == {office.key(eve)}
    assert office.objects_given() == sorted(ids), "each object with its change, and no other"
    assert after["one"].revision == before["one"].revision + 1
    assert after["hers"] == before["hers"]
    assert re.search(r"^friends\t\w+\teve@staff", office.run("acl", "list"), re.MULTILINE)


def test_nothing_is_given_when_the_user_may_not_be_removed_or_nobody_is_there_to_have_it(office: StaffData) -> None:
    bob = office.user("bob")
    office.keep("admin@directory.admin", "plan")
    printed = office.run("user", "remove", "admin@directory.admin", "--give-to", bob, code=3)
    assert "Nobody could sign in to the administration" in printed
    assert office.rows()["plan"].owner == "admin@directory.admin"
    office.keep(bob, "draft")
    office.run("group", "add", "crowd@staff")
    for receiver in ("nobody@staff", bob, "BOB@staff", "crowd@staff"):
        office.run("user", "remove", bob, "--give-to", receiver, code=3)
    assert office.rows()["draft"].owner == bob
    assert "active" in office.run("user", "show", bob)


def test_the_user_who_stands_for_a_resource_comes_and_goes_with_it(office: StaffData) -> None:
    bob, resource_id = office.user("bob"), re.findall(r"[0-9a-f-]{36}", office.run("resource", "add", "App"))[0]
    stand_in = f"{resource_id}@directory.admin"
    for command in (("remove",), ("remove", "--give-to", bob), ("rename", "other")):
        verb, *more = command
        assert "stands for the resource 'App'" in office.run("user", verb, stand_in, *more, code=3)
    assert "active" in office.run("user", "show", stand_in)
    office.run("resource", "remove", "App")
    office.run("user", "show", stand_in, code=3)


def test_what_a_removed_user_left_is_given_by_the_name_they_bore(office: StaffData) -> None:
    bob, eve = office.user("bob"), office.user("eve")
    office.keep(bob, "former")
    office.run("user", "remove", bob)
    office.user("bob")
    office.keep(bob, "present")
    assert "main: 1 objects" in office.run("repository", "give", eve, "--left-by", bob)
    assert {one.name: one.owner for one in office.rows().values()} == {"former": eve, "present": bob}
    assert office.rows()["present"].owner_key == office.key(bob)
    assert "main: 1 objects" in office.run("repository", "give", bob, "--all-of", eve)
    assert office.rows()["former"].owner_key == office.key(bob), "to whoever bears the name now"
    assert "Given to eve@staff: nothing" in office.run("repository", "give", eve, "--left-by", bob)


def test_single_objects_are_given(office: StaffData) -> None:
    bob, eve = office.user("bob"), office.user("eve")
    first, second = office.keep(bob, "first", "second")
    office.run("repository", "give", eve, first.upper())
    assert {one.name: one.owner for one in office.rows().values()} == {"first": eve, "second": bob}
    office.run("repository", "give", eve, second, "0900000000000000", code=3)
    assert office.rows()["second"].owner == bob, "all or none"
    for wrong in ([], [first, "--all-of", bob], ["--all-of", bob, "--left-by", bob]):
        assert "one of the three" in office.run("repository", "give", eve, *wrong, code=2)


def test_a_group_that_is_removed_is_taken_out_of_the_acls(office: StaffData) -> None:
    office.run("group", "add", "team@staff")
    office.acl("admin@directory.admin", "readers", team=Permission.READ)
    former = office.key("team@staff")
    assert "1 ACLs named" in office.run("group", "remove", "team@staff")
    office.run("group", "add", "team@staff")
    assert office.key("team@staff") != former
    assert "team@staff" not in office.run("acl", "list")


def _give_until_killed(data: Path, arguments: list[str], last: int) -> None:
    left = iter(range(last))

    @event.listens_for(Engine, "after_cursor_execute")
    def count(*_about: Any) -> None:
        if next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)

    commands.run(["--data", str(data), *QUICK, *arguments])


def test_a_removal_killed_anywhere_is_finished_by_the_next(office: StaffData, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ownership, "_AT_A_TIME", 2)
    eve = office.user("eve")
    killed = 0
    for last in range(10, 60, 6):
        bob = office.user("bob")
        ids = office.keep(bob, *(f"plan {last} {number}" for number in range(5)))
        office.acl(bob, f"friends {last}")
        already = office.objects_given()
        arguments = ["user", "remove", bob, "--give-to", eve]
        child = multiprocessing.get_context("fork").Process(
            target=_give_until_killed, args=(office.folder.path, arguments, last)
        )
        child.start()
        child.join(PATIENCE)
        assert child.exitcode in (0, -signal.SIGKILL)
        if child.exitcode:
            killed += 1
            if office.folder.identify([bob]):
                office.run(*arguments)
        mine = [one for one in office.rows().values() if one.id in ids]
        assert {one.owner for one in mine} == {eve}, f"killed after statement {last}"
        assert office.objects_given() == sorted(already + ids), "each object is given once"
        assert not office.folder.identify([bob])
    assert killed >= 3


def test_names_of_a_migrated_folder_are_bound_to_their_bearers_or_to_nobody(office: StaffData) -> None:
    bob = office.user("bob")
    with office.folder.database("repository") as database, database.begin() as cx:
        cx.execute(sa.delete(name_keys.bearers))
        rows = [{"key": name, "name": name, "bound": 0} for name in (bob, "gone@staff", "admin@directory.admin")]
        cx.execute(name_keys.bearers.insert(), rows)
    office.run("migrate")
    office.user("gone")
    assert office.key("gone@staff") != "gone@staff"
    assert office.key(bob) == bob
    office.run("user", "remove", bob)
    office.user("bob")
    assert office.key(bob) != bob


def test_a_directory_that_runs_apart_says_that_it_cannot_know(office: StaffData) -> None:
    bob, eve = office.user("bob"), office.user("eve")
    apart = ["--set", "halves=directory"]
    assert "elsewhere" in office.run(*apart, "user", "remove", bob, "--give-to", eve, code=3)
    assert "active" in office.run("user", "show", bob)
    assert "elsewhere" in office.run(*apart, "user", "remove", bob)

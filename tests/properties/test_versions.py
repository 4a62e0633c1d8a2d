"""Versions against a small model: check-out, cancel, check-in, deletion of one, of what is unused, and of all.

Two people who may do everything work on a few trees. After each step, every version says what the model says, the
lists show what is current, and the counts of usage are those of the objects.
"""

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy.engine import Connection

from muniment.ground.refusals import Refusal
from muniment.repository.refusals import CheckedOut, NotCheckedOut, Superseded
from muniment.repository.store.filters.cursors import Stretch
from muniment.repository.store.objects import inventory
from muniment.repository.store.objects.contents import usage
from muniment.repository.store.objects.decisions import checkins, checkouts, version_lists, version_removal
from muniment.repository.store.objects.decisions.checkins import CheckIn
from muniment.repository.store.objects.decisions.version_lists import History
from muniment.repository.store.objects.decisions.version_removal import Scope
from muniment.repository.store.objects.listing import lists
from muniment.repository.store.objects.listing.lists import Folder
from muniment.repository.store.objects.properties.version import Policy
from muniment.repository.store.permissions.principals import Permission, Principals
from tests.properties.lengths import examples
from tests.shelf import ADMIN, MARTA, Shelf

OTHER = Principals("edith@demo", frozenset({"staff@demo"}))
PEOPLE = {each.id: each for each in (MARTA, OTHER)}
LABELS = ("draft", "final")


class ModelVersion:
    """The model: a version knows its tree, the version before it, its labels, and who holds it."""

    def __init__(self, tree: "ModelTree", number: tuple[int, ...], before: "ModelVersion | None") -> None:
        self.tree, self.number, self.before = tree, number, before
        self.labels: set[str] = set()
        self.holder = ""
        self.id = ""

    def latest(self) -> bool:
        return not any(each.before is self and len(each.number) == len(self.number) for each in self.tree.versions)


class ModelTree:
    """The model: versions in the order in which they were made, and the current one."""

    def __init__(self) -> None:
        self.versions: list[ModelVersion] = []
        self.current: ModelVersion | None = None

    def remove(self, gone: list[ModelVersion]) -> None:
        self.versions = [each for each in self.versions if each not in gone]
        for each in self.versions:
            while each.before in gone:
                assert each.before is not None
                each.before = each.before.before
        while self.current in gone:
            assert self.current is not None
            self.current = self.current.before
        if self.current is None and self.versions:
            self.current = self.versions[-1]


class VersionLife(RuleBasedStateMachine):
    """A few trees of one repository."""

    shelf: Shelf
    names = 0

    versions: Bundle[ModelVersion] = Bundle("versions")

    def __init__(self) -> None:
        super().__init__()
        self.trees: list[ModelTree] = []
        self.gone: set[str] = set()
        VersionLife.names += 1
        self.folder = self.shelf.create(
            {"object_name": f"cabinet {VersionLife.names}", "acl_name": "open"}, type_name="cabinet"
        ).id

    @rule(target=versions)
    def create(self) -> ModelVersion:
        tree = ModelTree()
        first = ModelVersion(tree, (1, 0), None)
        first.id = self.shelf.create({"object_name": "x", "acl_name": "open"}, folder_id=self.folder).id
        tree.versions.append(first)
        tree.current = first
        self.trees.append(tree)
        return first

    @rule(one=versions, who=st.sampled_from(sorted(PEOPLE)))
    def check_out(self, one: ModelVersion, who: str) -> None:
        if one.id in self.gone:
            return
        refused = self.decide(
            lambda cx: checkouts.check_out(cx, self.shelf.repository, PEOPLE[who], one.id, self.shelf.now)
        )
        assert refused is (CheckedOut if one.holder not in ("", who) else None)
        one.holder = one.holder or who

    @rule(one=versions, who=st.sampled_from([*sorted(PEOPLE), ADMIN.id]))
    def cancel(self, one: ModelVersion, who: str) -> None:
        if one.id in self.gone:
            return
        principals = PEOPLE.get(who, ADMIN)
        refused = self.decide(
            lambda cx: checkouts.cancel(cx, self.shelf.repository, principals, one.id, self.shelf.now)
        )
        if not one.holder:
            assert refused is NotCheckedOut
        elif who not in (one.holder, ADMIN.id):
            assert refused is CheckedOut
        else:
            assert refused is None
            one.holder = ""

    @rule(
        target=versions,
        one=versions,
        who=st.sampled_from(sorted(PEOPLE)),
        policy=st.sampled_from(["next-minor", "next-minor", "next-major", "branch-version"]),
        labels=st.sets(st.sampled_from(LABELS)),
        current=st.sampled_from([True, True, False]),
        keep=st.booleans(),
        first=st.booleans(),
    )
    def check_in(
        self, one: ModelVersion, who: str, policy: Policy, labels: set[str], current: bool, keep: bool, first: bool
    ) -> Any:
        if one.id in self.gone:
            return multiple()
        if first and not one.holder:
            self.check_out(one, who)
        made: list[str] = []
        view = self.shelf.view(PEOPLE[who])
        what = CheckIn(policy, {}, labels=tuple(sorted(labels)), make_current=current, retain_lock=keep, comment=policy)
        refused = self.decide(lambda cx: made.append(checkins.check_in(cx, view, one.id, what, self.shelf.now).id))
        if one.holder != who:
            assert refused is (CheckedOut if one.holder else NotCheckedOut)
            return multiple()
        if policy != "branch-version" and not one.latest():
            assert refused is Superseded
            return multiple()
        assert refused is None
        tree, number = one.tree, one.number
        if policy == "next-minor":
            number = (*number[:-1], number[-1] + 1)
        else:
            stem = number if policy == "branch-version" else number[:-2]
            beside = [each.number for each in tree.versions if each.number[:-2] == stem]
            number = (*stem, max((each[-2] for each in beside), default=0) + 1, 0)
        new = ModelVersion(tree, number, one)
        new.id = made[0]
        for each in tree.versions:
            each.labels -= labels
        one.holder, new.labels, new.holder = "", set(labels), who if keep else ""
        tree.versions.append(new)
        if current:
            tree.current = new
        return new

    @rule(
        one=versions,
        who=st.sampled_from(sorted(PEOPLE)),
        scope=st.sampled_from(["selected", "selected", "selected", "unused", "all"]),
    )
    def delete(self, one: ModelVersion, who: str, scope: Scope) -> None:
        if one.id in self.gone:
            return
        tree = one.tree
        going = {
            "selected": [one],
            "unused": [
                each for each in tree.versions if not each.labels and each is not tree.current and not each.holder
            ],
            "all": list(tree.versions),
        }[scope]
        refused = self.decide(
            lambda cx: version_removal.delete(
                cx, self.shelf.repository, PEOPLE[who], one.id, scope, self.shelf.now, 1000
            )
        )
        if any(each.holder not in ("", who) for each in going):
            assert refused is CheckedOut
            return
        assert refused is None
        tree.remove(going)
        self.gone |= {each.id for each in going}

    @invariant()
    def every_version_is_as_the_model_says(self) -> None:
        view, shown = self.shelf.view(MARTA), set[str]()
        with self.shelf.database.read() as cx:
            for tree in self.trees:
                for each in tree.versions:
                    stored = inventory.rows(cx, self.shelf.repository.id, [each.id])[each.id]
                    number, *labels = stored.version.labels
                    current = {"CURRENT"} if each is tree.current else set()
                    assert (number, set(labels)) == (".".join(map(str, each.number)), each.labels | current)
                    assert stored.version.former is (each is not tree.current)
                    assert stored.version.superseded is not each.latest()
                    assert stored.version.antecedent_id == (each.before.id if each.before else None)
                    assert (stored.version.lock.owner if stored.version.lock else "") == each.holder
                    history = version_lists.version_page(cx, History(view, stored), Stretch(None, 0, 100))
                    assert [one.stored.id for one in history] == [one.id for one in reversed(tree.versions)]
                    assert version_lists.current(cx, view, each.id)[0].id == (tree.current and tree.current.id)
                shown |= {tree.current.id} if tree.current else set()
            folder = Folder(view, self.folder, "document")
            assert {one.stored.id for one in lists.object_page(cx, folder, Stretch(None, 0, 100))} == shown
            every = lists.object_page(cx, folder._replace(all_versions=True), Stretch(None, 0, 1000))
            assert {one.stored.id for one in every} == {one.id for tree in self.trees for one in tree.versions}
            assert usage.usage_by_owner(cx) == inventory.amounts_by_owner(cx)

    def decide(self, decision: Callable[[Connection], object]) -> type[Refusal] | None:
        """Take a decision; give the class of its refusal."""
        try:
            with self.shelf.database.begin() as cx:
                decision(cx)
        except Refusal as refusal:
            return type(refusal)
        return None


def test_versions_live_as_the_model_says(shelf: Shelf) -> None:
    everything = {"owner": Permission.DELETE, "staff@demo": Permission.DELETE}
    shelf.acl("open", everything)
    machine = type("VersionLifeHere", (VersionLife,), {"shelf": shelf})
    run_state_machine_as_test(
        machine,
        settings=settings(
            deadline=None,
            max_examples=examples(8, 300),
            stateful_step_count=25,
            suppress_health_check=list(HealthCheck),
        ),
    )

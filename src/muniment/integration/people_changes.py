"""How does an administrator of the directory change its users and groups at a repository?

By the directory's rules, and those of ``guards`` and ``person_removal``. Each change's transaction asks who the caller
is now (decision 0081), and so does whoever hashes a new password.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import msgspec
from sqlalchemy.engine import Connection

from muniment.directory import audit, version_stamps
from muniment.directory import refusals as of_directory
from muniment.directory.administration import decisions, rules
from muniment.directory.context import Directory
from muniment.directory.entries import attributes, editing, entries
from muniment.directory.entries import names as directory_names
from muniment.directory.entries.table import Entry
from muniment.ground.naming import fold_name
from muniment.ground.refusals import Refusal
from muniment.integration import directory_people, guards, person_removal
from muniment.integration.directory_people import to_person
from muniment.repository import refusals
from muniment.repository.store.people import Kind, Membership, PeopleChanges, Person, PersonChange, Who

_DISABLED, _LOCKED = 1, 2

_SPELLINGS: Mapping[type[Refusal], type[Refusal]] = {
    of_directory.NotAdministrator: refusals.NotPermitted,
    of_directory.UnknownEntry: refusals.UnknownPerson,
    of_directory.UnknownGroup: refusals.UnknownPerson,
    of_directory.UnknownPartition: refusals.UnknownPerson,
    of_directory.NameTaken: refusals.NameTaken,
    of_directory.NameInUse: refusals.InUse,
    of_directory.NobodyAdministers: refusals.NoAdministratorLeft,
    of_directory.BadAttribute: refusals.WrongValue,
    of_directory.BadName: refusals.WrongValue,
    of_directory.WrongPartition: refusals.WrongValue,
    of_directory.SignsIn: refusals.InUse,
}
"""What a repository's callers get instead."""


class DirectoryPeopleChanges(PeopleChanges):
    """Changes the directory's people in this process."""

    def __init__(self, directory: Directory, holdings: person_removal.Holdings) -> None:
        self._directory, self._holdings = directory, holdings
        self._database, self._names = directory.transactions.database, directory.options.names

    def find(self, who: Who, kind: Kind, person_id: str, group_id: str | None) -> Person:
        with self._translated(), self._database.read() as cx:
            self._require_right(cx, who)
            return directory_people.find_person(cx, self._names, None, kind, person_id, group_id)

    def add(self, who: Who, kind: Kind, person: PersonChange) -> Person:
        """It lies in its partition's root unit."""
        password_hash = self._hash(who, person)
        now, names, description = self._directory.clock(), self._names, person.description or ""
        with self._change(who, {of_directory.UnknownPartition: refusals.WrongValue}) as cx:
            if kind == "group":
                group = decisions.add_group(cx, names, person.id or "", None, now, description=description)
                self._set_values(cx, kind, group, person)
                return to_person(cx, names, kind, group)
            user = decisions.add_user(
                cx, names, person.id or "", None, now, password_hash=password_hash, description=description
            )
            self._set_values(cx, kind, user, person)
            return self._with_state(cx, kind, self._set_state(cx, user, person.state))

    def change(self, who: Who, kind: Kind, person_id: str, change: PersonChange) -> Person:
        password_hash = self._hash(who, change)
        now = self._directory.clock()
        with self._change(who) as cx:
            entry = self._find(cx, kind, person_id)
            if password_hash is not None:
                decisions.set_password(cx, entry, password_hash, now)
            entry = self._set_state(cx, entry, change.state)
            if change.description is not None:
                editing.set_description(cx, entry, change.description, now)
            if change.id is not None:
                self._rename(cx, entry, change.id)
            self._set_values(cx, kind, entry, change)
            return self._with_state(cx, kind, entry)

    def remove(self, who: Who, kind: Kind, person_id: str) -> str:
        with self._translated({of_directory.BadName: refusals.InUse}):
            with self._database.read() as cx:
                self._require_right(cx, who)
                shown_id = entries.shown_id(self._names, self._find(cx, kind, person_id))

            def check_right(cx: Connection) -> None:
                version_stamps.lock_rights(cx)
                self._require_right(cx, who)

            clock = self._directory.clock
            person_removal.remove(
                self._database, self._holdings, self._names, kind, person_id, clock, check_right=check_right
            )
        return shown_id

    def add_member(self, who: Who, group_id: str, kind: Kind, member_id: str) -> Membership:
        """Groups that contain each other have the same members."""
        with self._change(who) as cx:
            group, member = self._find(cx, "group", group_id), self._find(cx, kind, member_id)
            decisions.add_members(cx, group, [member], self._directory.clock())
            return Membership(to_person(cx, self._names, "group", group), self._with_state(cx, kind, member))

    def remove_member(self, who: Who, group_id: str, kind: Kind, member_id: str) -> Membership:
        with self._change(who) as cx:
            group, member = self._find(cx, "group", group_id), self._find(cx, kind, member_id)
            shown = Membership(to_person(cx, self._names, "group", group), to_person(cx, self._names, kind, member))
            if not decisions.remove_members(cx, group, [member], self._directory.clock()):
                raise refusals.UnknownPerson(f"{shown.member.id} is not directly in {shown.group.id}.")
            return shown

    def _find(self, cx: Connection, kind: Kind, person_id: str) -> Entry:
        return entries.find(cx, self._names, person_id, kind)

    def _set_state(self, cx: Connection, user: Entry, state: int | None) -> Entry:
        now = self._directory.clock()
        if state is not None and bool(state & _DISABLED) != user.disabled:
            decisions.set_disabled(cx, user, not user.disabled, now)
        if state is not None and bool(state & _LOCKED) != user.locked:
            decisions.set_locked(cx, user, not user.locked, now)
        return user

    def _set_values(self, cx: Connection, kind: Kind, entry: Entry, change: PersonChange) -> None:
        entry = entries.by_id(cx, entry.id) or entry
        second_name = "" if change.second_name == entries.shown_name(self._names, entry) else change.second_name
        texts = {directory_people.SECOND_NAME[kind]: second_name, directory_people.ADDRESS: change.address}
        written = {name: [text] if text else [] for name, text in texts.items() if text is not None}
        if written:
            attributes.put(cx, self._names, entry, written, self._directory.clock())

    def _rename(self, cx: Connection, entry: Entry, new_id: str) -> None:
        name, partition = directory_names.split_user_id(new_id)
        present_partition = entries.shown_partition(self._names, entry)
        if fold_name(partition) != fold_name(present_partition):
            raise refusals.WrongValue(
                f"{entries.shown_id(self._names, entry)} stays in its partition: only the name before '@' can change."
            )
        if name != entries.shown_name(self._names, entry):
            guards.rename(
                *(cx, self._holdings.database.read, self._names, entry, name, self._directory.clock()),
                self._holdings.client_settings,
            )

    def _with_state(self, cx: Connection, kind: Kind, entry: Entry) -> Person:
        entry_now = entries.by_id(cx, entry.id) or entry
        state = _DISABLED * entry_now.disabled + _LOCKED * entry_now.locked if kind == "user" else None
        return msgspec.structs.replace(to_person(cx, self._names, kind, entry_now), state=state)

    def _hash(self, who: Who, change: PersonChange) -> str | None:
        """Raises NotPermitted, before it hashes, if the caller may not change users, and WrongValue."""
        if change.password is None:
            return None
        with self._translated():
            with self._database.read() as cx:
                self._require_right(cx, who)
            return self._directory.gate.hash_new(change.password)

    def _require_right(self, cx: Connection, who: Who) -> None:
        rules.require_administrator(cx, self._names, who())

    @contextmanager
    def _change(self, who: Who, others: Mapping[type[Refusal], type[Refusal]] | None = None) -> Iterator[Connection]:
        # No other write shares this transaction, so ``who`` sees every decision that came before it.
        with self._translated(others), self._database.begin() as cx:
            version_stamps.lock_rights(cx)
            self._require_right(cx, who)
            with audit.decision(cx):
                yield cx

    @staticmethod
    @contextmanager
    def _translated(others: Mapping[type[Refusal], type[Refusal]] | None = None) -> Iterator[None]:
        """Raise a repository's refusals instead: by ``others`` first, then by ``_SPELLINGS``."""
        spellings = {**_SPELLINGS, **(others or {})}
        try:
            yield
        except tuple(spellings) as refusal:
            raise spellings[type(refusal)](refusal.sentence) from refusal

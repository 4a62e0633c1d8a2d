"""What do all commands about entries share: how is an entry named, found, listed and renamed?"""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Literal

import typer
from sqlalchemy.engine import Connection

from muniment.cli import terminal
from muniment.cli.repository import ownership
from muniment.cli.running import Rows
from muniment.directory.administration import decisions
from muniment.directory.entries import entries, resources
from muniment.directory.entries.table import Entry, Kind
from muniment.directory.oauth.sessions import Session, SessionCount
from muniment.directory.options import DirectoryNames
from muniment.directory.refusals import UnknownEntry
from muniment.ground.clock import timestamp
from muniment.installation.data_folder import DataFolder
from muniment.integration import guards, person_removal

EntryId = Annotated[str, typer.Argument(metavar="NAME@PARTITION")]
PartitionName = Annotated[str, typer.Argument(metavar="PARTITION")]
Location = Annotated[str, typer.Argument(metavar="LOCATION", help="Its distinguished name, as 'unit list' shows it.")]
Target = Annotated[
    str, typer.Argument(metavar="TARGET", help="The unit to move it into, by its location; a partition: its root unit.")
]
NewName = Annotated[str, typer.Argument(metavar="NEW_NAME")]
Description = Annotated[str, typer.Option(help="Free text.")]
NewDescription = Annotated[str | None, typer.Option(help="Free text.")]
Where = Annotated[
    str,
    typer.Option("--in", metavar="LOCATION", help="Location of the unit for the new entry; otherwise the root unit."),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force", help="Confirm that no repository elsewhere depends on it; needed if the directory runs apart."
    ),
]


def find_entry(data: DataFolder, cx: Connection, text: str) -> Entry:
    """Find an entry by a location, by ``name@partition``, or by a partition's name.

    Raises UnknownEntry, UnknownPartition, and BadName for a location that cannot be read.
    """
    names = data.settings.directory.names
    if text.lower().endswith(names.dn_suffix.lower()):
        return entries.find_location(cx, names, text)
    if "@" not in text:
        return entries.find_partition(cx, names, text)
    for find in (entries.find_user, entries.find_group):
        try:
            return find(cx, names, text)
        except UnknownEntry:
            continue
    raise UnknownEntry(f"There is no user and no group {text[:200]!r}.")


ENTRY_HEADS = ("Kind", "Name", "State", "Description")
SESSION_HEADS = ("Session", "User", "Client", "Resource", "Since", "Expires")


def entries_of_kind(data: DataFolder, cx: Connection, partition: str, kind: Kind) -> Rows:
    partition_entry = entries.find_partition(cx, data.settings.directory.names, partition)
    return entry_rows(data, entries.listing(cx, partition_entry, kind, limit=None))


def entry_rows(data: DataFolder, several: list[Entry]) -> Rows:
    names = data.settings.directory.names
    spellings = {"partition": entries.shown_name, "unit": entries.location}
    return [
        (
            entry.kind,
            spellings.get(entry.kind, entries.shown_id)(names, entry),
            state_of(entry) if entry.kind == "user" else None,
            entry.description,
        )
        for entry in several
    ]


def rename_entry(data: DataFolder, cx: Connection, entry: Entry, name: str, *, force: bool = False) -> Entry:
    snapshot, names = repository_snapshot(data), data.settings.directory.names
    client_settings = guards.read_client_settings(data.settings.repository) if data.together else {}
    return guards.rename(cx, snapshot, names, entry, name, data.now, client_settings, force=force)


def rename_person(data: DataFolder, cx: Connection, entry: Entry, name: str, *, force: bool) -> str:
    return entries.shown_id(data.settings.directory.names, rename_entry(data, cx, entry, name, force=force))


def move_entry(data: DataFolder, cx: Connection, entry: Entry, target: str) -> str:
    names = data.settings.directory.names
    return entries.location(names, decisions.move(cx, names, entry, find_entry(data, cx, target), data.now))


def remove_person(
    data: DataFolder, kind: Literal["user", "group"], entry_id: str, *, give_to: str = "", force: bool = False
) -> None:
    names = data.settings.directory.names
    with data.database("directory") as directory, ownership.open_holdings(data) as holdings:
        with directory.read() as cx:
            person_id = entries.shown_id(names, entries.find(cx, names, entry_id, kind))
        with terminal.Bars() as bars:
            departure = person_removal.remove(
                directory,
                holdings,
                names,
                kind,
                entry_id,
                lambda: data.now,
                ownership.Progress(data, bars),
                give_to=give_to,
                force=force,
            )
    ownership.print_departure(data, person_id, departure, give_to, describe_removal(data, departure.dependents))


def repository_snapshot(data: DataFolder) -> guards.Snapshot | None:
    """None if no repository runs here."""
    return partial(data.read, "repository") if "repository" in data.settings.halves else None


def describe_removal(data: DataFolder, dependents: decisions.Dependents) -> str:
    names = data.settings.directory.names
    parts = {
        "It was in the groups": [entries.shown_id(names, group) for group in dependents.groups],
        "It had the members": [entries.shown_id(names, entry) for entry in dependents.members],
        "It was in the access roles of": [resources.shown_name(names, resource) for resource in dependents.resources],
    }
    sentences = [
        f"{beginning} {_first_ten(listed_names)}." for beginning, listed_names in parts.items() if listed_names
    ]
    session_sentence = [describe_ended(dependents.ended)] if dependents.ended != SessionCount() else []
    return " ".join(["Removed.", *sentences, *session_sentence])


def describe_ended(count: SessionCount) -> str:
    return f"Ended: {count.grants} grants, {count.tickets} tickets."


def session_rows(data: DataFolder, cx: Connection, several: list[Session]) -> Rows:
    names = data.settings.directory.names
    ids = {number for each in several for number in (each.user_id, each.client_id or 0)}
    people = {number: entries.by_id(cx, number) for number in ids}
    resource_names = {each.id: resources.shown_name(names, each) for each in resources.all_resources(cx)}

    def name(number: int, show: Callable[[DirectoryNames, Entry], str]) -> str:
        person = people[number]
        return "(removed)" if person is None else show(names, person)

    return [
        (
            each.id,
            name(each.user_id, entries.shown_id),
            "(browser)" if each.client_id is None else name(each.client_id, entries.shown_name),
            resource_names.get(each.resource_id, "(removed)"),
            timestamp(each.since),
            timestamp(each.expires),
        )
        for each in several
    ]


def state_of(entry: Entry) -> str:
    states = [name for name, holds in (("disabled", entry.disabled), ("locked", entry.locked)) if holds]
    return " and ".join(states) or "active"


def _first_ten(names: list[str]) -> str:
    remainder = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return ", ".join(names[:10]) + remainder

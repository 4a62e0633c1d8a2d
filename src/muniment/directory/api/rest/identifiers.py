"""Which entry does a text name, in a path or in a list of a body (docs/interface.md, ours 23)?

``<name>@<partition>``, a bare name, or a distinguished name, whose first part may hold an entry's UUID instead of its
name. Some clients write a blank as ``+``: a text with one is first read as it is.
"""

import uuid
from collections.abc import Iterator
from contextlib import suppress

from sqlalchemy.engine import Connection

from muniment.directory.entries import entries, resources
from muniment.directory.entries.resources import Resource
from muniment.directory.entries.table import CLIENTS, Entry, Kind
from muniment.directory.options import DirectoryNames, DirectoryOptions
from muniment.directory.refusals import (
    BadName,
    UnknownClient,
    UnknownEntry,
    UnknownGroup,
    UnknownPartition,
    UnknownResource,
    UnknownUser,
)
from muniment.ground.naming import MalformedName, fold_name, read_dn

PERSONS: tuple[Kind, ...] = ("user",)
GROUPS: tuple[Kind, ...] = ("group",)
ROLES: tuple[Kind, ...] = ("role",)
MEMBERS: tuple[Kind, ...] = ("user", "group", "role")


def find(cx: Connection, options: DirectoryOptions, text: str, *kinds: Kind) -> Entry:
    """Find an entry of one of these kinds. Raises UnknownEntry; UnknownUser or UnknownGroup if only
    these are meant.
    """
    for reading in readings(text):
        entry = _find(cx, options, reading, kinds)
        if entry is not None:
            return entry
    refusal = {PERSONS: UnknownUser, GROUPS: UnknownGroup}.get(kinds, UnknownEntry)
    hint = "" if "@" in text else f", or there are several: write {text[:100]}@<partition>"
    raise refusal(f"There is no {' or '.join(kinds)} {text[:200]!r}{hint}.")


def find_place(cx: Connection, options: DirectoryOptions, text: str) -> Entry:
    """Find a unit or a partition by its location. Raises UnknownEntry."""
    for reading in readings(text):
        entry = _by_location(cx, options, reading, ("unit", "partition"))
        if entry is not None:
            return entry
    raise UnknownEntry(f"There is no unit {text[:200]!r}.")


def find_partition(cx: Connection, options: DirectoryOptions, text: str) -> Entry:
    """Find a partition by its name or its location. Raises UnknownPartition."""
    for reading in readings(text):
        try:
            return entries.find_partition(cx, options.names, reading)
        except UnknownPartition:
            entry = _by_location(cx, options, reading, ("partition",))
            if entry is not None:
                return entry
    raise UnknownPartition(f"There is no partition {text[:100]!r}.")


def find_resource(cx: Connection, names: DirectoryNames, text: str) -> Resource:
    """Find a resource by its identifier or its name. Raises UnknownResource."""
    try:
        return resources.by_id(cx, text)
    except UnknownResource:
        pass
    for reading in readings(text):
        try:
            return resources.find(cx, names, reading)
        except UnknownResource:
            continue
    raise UnknownResource(f"There is no resource {text[:100]!r}.")


def find_client(cx: Connection, options: DirectoryOptions, text: str) -> Entry:
    """Find an OAuth client by its name, with or without its partition, or by its location. Raises UnknownClient."""
    partition = options.names.clients_partition
    for reading in readings(text):
        for name in (reading, f"{reading}@{partition}"):
            entry = entries.find_member(cx, options.names, name, "user") or _by_location(cx, options, name, PERSONS)
            if entry is not None and entry.partition_built_in == CLIENTS:
                return entry
    raise UnknownClient(f"There is no client {text[:100]!r}.")


def readings(text: str) -> Iterator[str]:
    """The text as it is, then with a blank for each ``+``."""
    yield text
    if "+" in text:
        yield text.replace("+", " ")


def _find(cx: Connection, options: DirectoryOptions, text: str, kinds: tuple[Kind, ...]) -> Entry | None:
    if "=" in text and (entry := _by_location(cx, options, text, kinds)):
        return entry
    for kind in kinds:
        if entry := entries.find_member(cx, options.names, text, kind):
            return entry
    for kind in kinds:
        with suppress(UnknownEntry, UnknownGroup):
            return entries.find_meant(cx, options, text, kind)
    return None


def _by_location(cx: Connection, options: DirectoryOptions, text: str, kinds: tuple[Kind, ...]) -> Entry | None:
    try:
        entry = _by_identity(cx, options, text) or entries.find_location(cx, options.names, text)
    except (BadName, UnknownEntry, UnknownPartition):
        return None
    return entry if entry.kind in kinds else None


def _by_identity(cx: Connection, options: DirectoryOptions, text: str) -> Entry | None:
    """Read ``<class>=<uuid>,orgunit=...,partition=<partition>,<end of the suffix>``, as newer systems write it."""
    try:
        parts = read_dn(text)
        end = [pair for pair in read_dn(options.names.dn_suffix) if pair[0] == "dc"]
        identity = str(uuid.UUID(parts[0][1]))
    except (MalformedName, ValueError):
        return None
    partition = next((value for kind, value in parts if kind == "partition"), "")
    entry = entries.by_uuid(cx, identity)
    if entry is None or [(kind, fold_name(value)) for kind, value in parts[-len(end) :]] != [
        (kind, fold_name(value)) for kind, value in end
    ]:
        return None
    return entry if fold_name(entries.shown_partition(options.names, entry)) == fold_name(partition) else None

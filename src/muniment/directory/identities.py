"""Who bears this name now? What is never given again is their identity, the `entryUUID` of given 2.7."""

from collections.abc import Collection

from sqlalchemy.engine import Connection

from muniment.directory.entries import entries
from muniment.directory.entries.table import partition_key
from muniment.directory.options import DirectoryNames
from muniment.naming import fold_name

_AT_A_TIME = 500


def of(cx: Connection, names: DirectoryNames, ids: Collection[str]) -> dict[str, str]:
    """Say the identity of each user or group that bears one of these ids now: a statement for 500 of a partition.

    The ids are ``name@partition`` as the wire spells them, in any case; each answer comes under the id as it was given.
    """
    wanted: dict[str, dict[str, str]] = {}
    for one in ids:
        name, at, partition = one.rpartition("@")
        if at:
            wanted.setdefault(partition_key(names, partition), {})[fold_name(name)] = one
    found: dict[str, str] = {}
    for partition, by_name in wanted.items():
        every = sorted(by_name)
        for begin in range(0, len(every), _AT_A_TIME):
            some = {"partition": partition, "names": every[begin : begin + _AT_A_TIME]}
            found |= {by_name[fold_name(entry.name)]: entry.uuid for entry in entries.read(cx, entries.BEARING, some)}
    return found

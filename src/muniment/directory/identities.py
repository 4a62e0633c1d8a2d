"""Who bears this name now? The answer is their identity, the `entryUUID` of given 2.7, which is never used again."""

from collections.abc import Collection

from sqlalchemy.engine import Connection

from muniment.directory.entries import entries
from muniment.directory.entries.table import partition_key
from muniment.directory.options import DirectoryNames
from muniment.naming import fold_name

_AT_A_TIME = 500


def of(cx: Connection, names: DirectoryNames, ids: Collection[str]) -> dict[str, str]:
    """Return the identities of the users and groups that bear these ids now: a statement for 500 ids of a partition.

    The ids are ``name@partition`` as the wire spells them, in any case; each answer has the id as the caller wrote it.
    """
    ids_by_partition: dict[str, dict[str, str]] = {}
    for entry_id in ids:
        name, at, partition = entry_id.rpartition("@")
        if at:
            ids_by_partition.setdefault(partition_key(names, partition), {})[fold_name(name)] = entry_id
    identities: dict[str, str] = {}
    for partition, by_name in ids_by_partition.items():
        every = sorted(by_name)
        for begin in range(0, len(every), _AT_A_TIME):
            parameters = {"partition": partition, "names": every[begin : begin + _AT_A_TIME]}
            identities |= {
                by_name[fold_name(entry.name)]: entry.uuid for entry in entries.read(cx, entries.BEARING, parameters)
            }
    return identities

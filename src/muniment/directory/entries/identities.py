"""Who bears this name now? The answer is an identity, the `entryUUID` of given 2.7, which no later entry gets."""

from collections.abc import Collection

from sqlalchemy.engine import Connection

from muniment.database.connections import portions
from muniment.directory.entries import entries
from muniment.directory.entries.table import member_key, partition_key
from muniment.directory.options import DirectoryNames
from muniment.ground.naming import fold_name

_PAGE_SIZE = 500


def identities_of(cx: Connection, names: DirectoryNames, ids: Collection[str]) -> dict[str, str]:
    """Without unknown ids. Ids are ``name@partition`` as on the wire, in any case; the answer's keys are the caller's.
    One statement looks up at most 500 names of one partition.
    """
    ids_by_partition: dict[str, dict[str, list[str]]] = {}
    for entry_id in ids:
        name, at, partition = entry_id.rpartition("@")
        if at:
            key = partition_key(names, partition)
            ids_by_partition.setdefault(key, {}).setdefault(member_key(names, key, name), []).append(entry_id)
    identities: dict[str, str] = {}
    for partition, by_name in ids_by_partition.items():
        for folded_names in portions(sorted(by_name), _PAGE_SIZE):
            parameters = {"partition": partition, "names": folded_names}
            identities |= {
                entry_id: entry.uuid
                for entry in entries.read(cx, entries.BEARING, parameters)
                for entry_id in by_name[fold_name(entry.name)]
            }
    return identities

"""What a repository holds, read from its tables without the code of exports: equal for a repository and its import."""

import json
from typing import Any

import sqlalchemy as sa

from muniment.database.connections import Database, repository_tables

_OF_A_PLACE = {"seq", "id", "repository_id", "content_key", "acl_id", "default_acl_id", "key", "folded"}
"""Columns whose values are numbers and keys of one installation."""


def everything(database: Database, repository_id: int) -> dict[str, list[str]]:
    """Return the rows of a repository, by table, in their order; users as the directory knows them."""
    tables = repository_tables.tables
    with database.read() as cx:
        bearers = {row.key: f"{row.name} {row.identity}" for row in cx.execute(sa.select(tables["bearers"]))}
        acls, types = (
            {row.id: row for row in cx.execute(sa.select(table).where(table.c.repository_id == repository_id))}
            for table in (tables["acls"], tables["object_types"])
        )
        entries: dict[str, dict[str, int]] = {}
        of_acls = tables["acl_entries"].c.acl_id.in_(list(acls))
        for row in cx.execute(sa.select(tables["acl_entries"]).where(of_acls)):
            entries.setdefault(acls[row.acl_id].shown_id, {})[bearers.get(row.accessor, row.accessor)] = row.permission
        held: dict[str, list[str]] = {}
        for name, order in (
            ("acls", "id"),
            ("object_types", "name"),
            ("relation_types", "name"),
            ("objects", "seq"),
            ("relations", "seq"),
            ("comments", "seq"),
            ("saved_searches", "id"),
        ):
            table = tables[name]
            query = sa.select(table).where(table.c.repository_id == repository_id).order_by(table.c[order])
            rows = [_values(row._mapping) for row in cx.execute(query)]
            for one in rows:
                one |= {key: bearers.get(value, value) for key, value in one.items() if key.endswith("_key")}
                if name in ("object_types", "relation_types"):
                    one["created"] = None  # nobody is shown it
                if name == "acls" and one["owner_key"] == "=":
                    one["name"] = None  # it is made of the keys in the entries
            held[name] = [json.dumps(row, sort_keys=True, default=_text) for row in rows]
        objects = tables["objects"]
        of_repository = sa.select(objects.c.id).where(objects.c.repository_id == repository_id)
        for row in cx.execute(
            sa.select(objects.c.id, objects.c.acl_id, objects.c.default_acl_id).where(
                objects.c.repository_id == repository_id
            )
        ):
            default = acls[row.default_acl_id].shown_id if row.default_acl_id else None
            held.setdefault("rights", []).append(f"{row.id} {acls[row.acl_id].shown_id} {default}")
        for name in ("folder_links", "further_contents"):
            table = tables[name]
            members = sa.select(table).where(table.c.object_id.in_(of_repository))
            found = [json.dumps(_values(row._mapping), sort_keys=True, default=_text) for row in cx.execute(members)]
            held[name] = sorted(found)
        properties = tables["type_properties"]
        held["type_properties"] = sorted(
            json.dumps(
                [
                    types[row.type_id].name,
                    row.name,
                    row.kind,
                    row.repeating,
                    row.length,
                    row.label,
                    row.searchable,
                    row.rules,
                ]
            )
            for row in cx.execute(sa.select(properties).where(properties.c.type_id.in_(list(types))))
        )
        held["rights"] = sorted(held.get("rights", ()))
        held["entries"] = sorted(f"{acl} {sorted(of_acl.items())}" for acl, of_acl in entries.items())
    return held


def _values(row: Any) -> dict[str, Any]:
    def travels(name: str, value: object) -> bool:
        return name not in _OF_A_PLACE or (name == "id" and isinstance(value, str))

    return {str(name): value for name, value in row.items() if travels(str(name), value)}


def _text(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)

"""No decision changes what the audit tells of without recording it, whoever asks for it (decision 0112)."""

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from tests.house.sources import Module, modules
from tests.house.test_tables import TABLES

RECORDED = {
    "access_role_members", "access_roles", "acl_entries", "acls", "attribute_values", "configurations",
    "custom_attributes", "entries", "memberships", "oauth_clients", "object_types", "objects", "relation_types",
    "repositories", "resources", "signing_keys", "system_attributes", "type_properties", "wastebasket",
}  # fmt: skip
"""Whoever writes to one of these tables records it, or stands in ``_ELSEWHERE``."""

NOT_RECORDED = {
    "of the audit itself": {"audit_events", "repository_audit_events", "repository_rights_history", "rights_history"},
    "what a sign-in makes; an administrator's end of sessions is recorded by ``sessions``": {
        "access_tokens", "assertions", "authorization_codes", "device_codes", "grants", "tickets", "wrong_user_codes",
    },
    "no decision changes them": {"endings", "generation", "keys", "marks", "member_counts", "repository_keys"},
    "the change logs": {"changes", "cuts", "entry_changes"},
    "a name is bound when it is first met": {"bearers"},
    "content, what hangs on objects, and where they lie": {
        "comments", "discarded_contents", "folder_links", "further_contents", "relations", "stored_contents", "usage",
    },
    "what is kept of searches": {"links", "saved_results", "saved_searches", "walks"},
    "the work of the server and of imports": {
        "embeddings", "followers", "imports", "index_checks", "index_reports", "leases", "reindexings", "texts",
        "turns", "unfinished_imports", "unindexed",
    },
}  # fmt: skip

_ELSEWHERE = {
    ("directory/oauth/signing_keys.py", "purge"): "what nobody needs any more goes",
    ("directory/entries/credentials.py", "note_sign_in"): "a sign-in counts wrong passwords and places",
    ("directory/entries/editing.py", "_refresh_units"): "the change of the unit above is recorded",
    ("repository/store/objects/objects.py", "keep_new"): "a new object says its ACL and owner itself",
    ("repository/store/objects/objects.py", "put_back"): "so does one of an export; ``restore`` records another ACL",
    ("repository/store/objects/objects.py", "remove"): "the wastebasket has its ACL and owner",
    ("repository/store/objects/wastebasket.py", "keep_deleted"): "with the ACL and owner that the object had",
    ("repository/store/objects/wastebasket.py", "take_out"): "``restore`` records another ACL",
    ("repository/store/objects/decisions/imported_objects.py", "link"): "where it lies",
    ("repository/store/objects/found_properties.py", "keep_found_properties"): "what its content says of it",
    ("repository/store/objects/version_tree.py", "put"): "its version",
    ("repository/store/objects/types/reindexing.py", "begin"): "``type_editing`` records what began it",
    ("repository/store/objects/types/reindexing.py", "finish"): "``type_editing`` records what began it",
    ("repository/store/permissions/acl_entries.py", "keep_entries"): "its callers record",
    ("repository/store/permissions/acl_entries.py", "drop"): "its callers record",
    ("repository/store/permissions/acl_entries.py", "drop_accessor"): "its callers record",
    ("repository/store/permissions/unnamed_acls.py", "keep_apart"): "``acls.forget`` records the entries",
}

_CALLERS_RECORD = {"acl_entries.keep_entries", "acl_entries.drop", "acl_entries.drop_accessor"}
_WRITES = {"insert", "update", "delete"}
_SQL = re.compile(r"(?:INSERT INTO|UPDATE|DELETE FROM)\s+(\w+)")
_PRODUCT = [module for module in modules() if "migrations" not in module.room]


def _written(node: ast.AST) -> Iterator[str]:
    """The variables, or in SQL the names, of tables that a part of a module writes to."""
    for each in ast.walk(node):
        if isinstance(each, ast.Call):
            called = each.func
            if isinstance(called, ast.Attribute) and called.attr in _WRITES and not (each.args or each.keywords):
                yield ast.unparse(called.value).rpartition(".")[2]
            elif ast.unparse(called) in {"upsert", "sa.insert", "sa.update", "sa.delete"} and each.args:
                yield ast.unparse(each.args[0]).rpartition(".")[2]
            elif (name := ast.unparse(called)) in _CALLERS_RECORD:
                yield name
        elif isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield from _SQL.findall(each.value)


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


@cache
def _variables(module: Module) -> frozenset[str]:
    """What this module may call a recorded table."""
    names = set(RECORDED)
    for table in RECORDED & TABLES.keys():
        owner, variable = TABLES[table]
        if module is owner or not variable.startswith("_"):
            names.add(variable)
    for node in module.tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.value).rpartition(".")[2] in names:
            names |= {ast.unparse(target) for target in node.targets}
    return frozenset(names)


def _functions(module: Module) -> Iterator[ast.FunctionDef]:
    yield from (node for node in ast.walk(module.tree) if isinstance(node, ast.FunctionDef))


def _writers(module: Module) -> list[ast.FunctionDef]:
    tables = _variables(module) | _CALLERS_RECORD
    statements = {
        ast.unparse(target)
        for node in module.tree.body
        if isinstance(node, ast.Assign) and tables & {*_written(node.value)}
        for target in node.targets
    }
    return [each for each in _functions(module) if tables & {*_written(each)} or statements & _names(each)]


def _recorders(module: Module) -> set[str]:
    """The functions that record, or call one of the module that does."""
    found = {
        each.name
        for each in _functions(module)
        if any(
            ast.unparse(node.func).startswith(("audit.record", "recorded_rights.", "_trail."))
            for node in ast.walk(each)
            if isinstance(node, ast.Call)
        )
    }
    while more := {each.name for each in _functions(module) if found & _names(each)} - found:
        found |= more
    return found


@pytest.mark.slow
def test_whoever_writes_what_the_audit_tells_of_records_it() -> None:
    silent = [
        (module.room, each.name)
        for module in _PRODUCT
        for each in _writers(module)
        if each.name not in _recorders(module) and (module.room, each.name) not in _ELSEWHERE
    ]
    assert not silent


@pytest.mark.slow
def test_each_exemption_is_of_a_writer_that_is_there() -> None:
    assert _ELSEWHERE.keys() <= {(module.room, each.name) for module in _PRODUCT for each in _writers(module)}


def test_of_each_table_it_is_said_whether_its_changes_are_recorded() -> None:
    said = [*RECORDED, *(table for tables in NOT_RECORDED.values() for table in tables)]
    assert len(said) == len({*said})
    assert {*said} == TABLES.keys()


def test_the_writers_are_found() -> None:
    """What this module finds, it finds: the functions that end and begin a membership, and the statement by name."""
    (module,) = (each for each in _PRODUCT if each.room == "directory/entries/memberships.py")
    assert {"add_members", "remove_members"} <= {each.name for each in _writers(module)} <= _recorders(module)

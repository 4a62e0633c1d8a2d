"""What takes a way in away is decided in one room: no surface calls what its decisions stand on."""

import ast
from functools import cache

import pytest

from muniment.directory.api.rest import addresses
from muniment.directory.api.rest.callers import RequiredRight
from tests.house.sources import Module, modules

_DECIDED = {
    "editing": {"set_password_hash", "set_disabled", "set_locked", "rename", "move", "delete"},
    "memberships": {"remove_members"},
    "resources": {"remove_from_role", "rename", "delete", "deactivate"},
    "tickets": {"end_of", "end_at", "end_acting", "end_every", "end_one"},
    "tokens": {"end", "end_every", "end_one"},
}
"""What no room but these may call."""

_ROOMS = {
    "directory/administration/client_decisions.py",
    "directory/administration/decisions.py",
    "directory/administration/resource_decisions.py",
    "directory/oauth/sessions.py",
}


@cache
def _calls(module: Module) -> set[str]:
    return {
        f"{node.value.id}.{node.attr}"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.attr in _DECIDED.get(node.value.id, ())
    }


@pytest.mark.slow
@pytest.mark.parametrize("noun", _DECIDED)
def test_only_decisions_with_their_rules_change_who_may_act(noun: str) -> None:
    """failures C12"""
    kept = {call for module in modules() if module.room in _ROOMS for call in _calls(module)}
    assert {f"{noun}.{name}" for name in _DECIDED[noun]} <= kept, "each is still what a decision stands on"
    for module in modules():
        if module.room not in _ROOMS:
            calls = {call for call in _calls(module) if call.startswith(f"{noun}.")}
            assert not calls, f"{module.room}: ask directory/administration/decisions"


_BY_REST = "directory/api/rest/"
_ASKS = f"{_BY_REST}calls.py"


@pytest.mark.slow
def test_no_address_by_rest_opens_a_transaction_without_asking_who_may() -> None:
    """A call's own transactions ask; nothing else of this room may open one, or ask in another way."""
    for module in modules():
        if not module.room.startswith(_BY_REST) or module.room == _ASKS:
            continue
        reached = {node.attr for node in ast.walk(module.tree) if isinstance(node, ast.Attribute)}
        assert not reached & {"transactions", "presented"} - _CALLERS_OWN.get(module.room, set()), module.room
    asking = next(module for module in modules() if module.room == _ASKS)
    (call,) = (node for node in asking.tree.body if isinstance(node, ast.ClassDef) and node.name == "Call")
    opening = {
        function.name
        for function in call.body
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute) and node.attr == "transactions"
    }
    assert opening == {"read", "read_long", "write", "write_jointly", "hash_password", "apart"}
    requiring = [
        (module.room, function.name)
        for module in modules()
        if module.room.startswith(_BY_REST)
        for function in ast.walk(module.tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "callers.require"
    ]
    assert requiring == [(_ASKS, "_ask")], "one function decides who may"


_CALLERS_OWN = {f"{_BY_REST}callers.py": {"presented"}}


def test_every_changing_address_by_rest_asks_for_a_right() -> None:
    """What is open to everybody shows its own credentials in the body, and tells of a sign-in if it does anything."""
    open_rows = {
        (verb, row.path)
        for row in addresses.ROWS
        for verb, method in row.methods.items()
        if method.right is RequiredRight.OPEN
    }
    by_own_secret = {("POST", f"/resources/{{resource}}/{what}") for what in ("deactivate", "people")}
    assert {row for row in open_rows if not row[1].startswith("/authentication/")} == by_own_secret
    for row in addresses.ROWS:
        for verb, method in row.methods.items():
            assert (method.kinds is None) == (verb == "GET"), f"{verb} {row.path}: mark it with events.tells(...)"

"""What takes a way in away is decided in one room: no surface calls what its decisions stand on."""

import ast
from functools import cache

import pytest

from tests.house.sources import Module, modules

_DECIDED = {
    "editing": {"set_password_hash", "set_disabled", "set_locked", "rename", "move", "delete"},
    "memberships": {"remove_member"},
    "resources": {"remove_from_role", "rename", "delete"},
    "tickets": {"end_of", "end_at", "end_every", "end_one"},
    "tokens": {"end", "end_every", "end_one"},
}
"""What no room but these may call."""

_ROOMS = {"directory/administration/decisions.py", "directory/oauth/sessions.py"}


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

"""What takes a way in away is decided in one room: no surface calls what its decisions stand on."""

import ast

import pytest

from tests.house.sources import ROOT

_DECIDED = {
    "editing": {"set_password_hash", "set_disabled", "set_locked", "delete"},
    "memberships": {"remove_member"},
    "resources": {"remove_from_role", "delete"},
    "tickets": {"end_of", "end_every", "end_one"},
    "tokens": {"end", "end_every", "end_one"},
}
"""What no room but these may call."""

_ROOMS = {"administration.py", "sessions.py"}


def _calls(source: str) -> set[str]:
    return {
        f"{node.value.id}.{node.attr}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.attr in _DECIDED.get(node.value.id, ())
    }


@pytest.mark.parametrize("noun", _DECIDED)
def test_only_decisions_with_their_rules_change_who_may_act(noun: str) -> None:
    """failures C12"""
    directory = ROOT / "src" / "muniment" / "directory"
    kept = {call for room in _ROOMS for call in _calls((directory / room).read_text("utf-8"))}
    assert {f"{noun}.{name}" for name in _DECIDED[noun]} <= kept, "each is still what a decision stands on"
    for path in (ROOT / "src").rglob("*.py"):
        if path.parent != directory or path.name not in _ROOMS:
            calls = {call for call in _calls(path.read_text("utf-8")) if call.startswith(f"{noun}.")}
            assert not calls, f"{path.name}: ask directory/administration"

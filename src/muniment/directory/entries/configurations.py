"""What do administrators configure as one document: trusted sites, the password policy, the audit?

What is never set has the values of its type.
"""

import re
from typing import Any, Final, TypeVar

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import directory_tables, required
from muniment.directory import audit
from muniment.directory.refusals import BadAttribute
from muniment.ground.clock import Instant
from muniment.ground.naming import is_storable

_configurations = sa.Table(
    "configurations",
    directory_tables,
    sa.Column("name", sa.String(40), primary_key=True),
    required("content", sa.Text),
    required("modified", sa.BigInteger),
)

_LONGEST = 200_000
_MOST_SITES, _LONGEST_SITE = 1000, 1000


class TrustedSites(msgspec.Struct, frozen=True):
    """Regular expressions for the addresses to which a sign-in may lead."""

    patterns: tuple[str, ...] = ()


class PasswordPolicy(msgspec.Struct, frozen=True):
    """0 or false: there is no such rule. Times are in days, the lockout's in minutes."""

    password_history_maximum_count: int = 0
    days_before_new_password_may_be_changed: int = 0
    password_maximum_duration: int = 0
    days_before_old_password_may_be_reused: int = 0
    lockout_failure_count: int = 0
    lockout_duration: int = 0
    minimum_number_of_characters: int = 0
    complex_password_validation_enabled: bool = False
    minimum_number_of_digits: int = 0
    minimum_number_of_symbols: int = 0
    minimum_number_of_uppercase: int = 0
    minimum_number_of_lowercase: int = 0
    minimum_changes_to_previous_password: int = 0
    max_number_of_consecutive_an_chars_in_password: int = 0
    block_common_password: bool = False


class AuditSettings(msgspec.Struct, frozen=True):
    """What clients of the field ask of the audit. It runs always, and records every change."""

    days_to_keep: int = 0
    enabled: bool = True
    audit_to: str = "DATABASE"
    event_ids: tuple[str, ...] = ()


_NAMES: Final[dict[type[msgspec.Struct], str]] = {
    TrustedSites: "trusted sites",
    PasswordPolicy: "password policy",
    AuditSettings: "audit",
}

T = TypeVar("T", TrustedSites, PasswordPolicy, AuditSettings)


def find(cx: Connection, kind: type[T]) -> T | None:
    """None if it was never set."""
    content = _content(cx, kind)
    return None if content is None else msgspec.json.decode(content, type=kind)


def put(cx: Connection, new: TrustedSites | PasswordPolicy | AuditSettings, now: Instant) -> None:
    """Raises BadAttribute."""
    _check(new)
    name, former = _NAMES[type(new)], _content(cx, type(new))
    if former == (content := msgspec.json.encode(new).decode()):
        return
    cx.execute(_PUT, {"name": name, "content": content, "modified": now})
    before, after = (msgspec.json.decode(text, type=dict[str, Any]) for text in (former or "{}", content))
    changed = [key for key, value in after.items() if before.get(key) != value]
    before, after = ({key: each[key] for key in changed if key in each} for each in (before, after))
    audit.record(cx, "configuration changed", audit.Target("configuration", name), before, after)


def _content(cx: Connection, kind: type[msgspec.Struct]) -> str | None:
    return cx.scalar(sa.select(_configurations.c.content).where(_configurations.c.name == _NAMES[kind]))


def _check(new: TrustedSites | PasswordPolicy | AuditSettings) -> None:
    text = msgspec.json.encode(new)
    if len(text) > _LONGEST:
        raise BadAttribute(f"This is too much: it has at most {_LONGEST} characters.")
    match new:
        case TrustedSites(patterns):
            _check_patterns(patterns)
        case PasswordPolicy():
            numbers = [value for value in msgspec.structs.astuple(new) if not isinstance(value, bool)]
            if not all(0 <= number <= 1_000_000 for number in numbers):
                raise BadAttribute("A rule of the password policy is a number from 0 to 1000000.")
        case AuditSettings():
            if not 0 <= new.days_to_keep <= 1_000_000 or not all(map(is_storable, (new.audit_to, *new.event_ids))):
                raise BadAttribute("The audit keeps events for 0 to 1000000 days, and its events have storable names.")


def _check_patterns(patterns: tuple[str, ...]) -> None:
    if len(patterns) > _MOST_SITES:
        raise BadAttribute(f"There are at most {_MOST_SITES} trusted sites.")
    for pattern in patterns:
        if not pattern or len(pattern) > _LONGEST_SITE or not is_storable(pattern):
            raise BadAttribute(f"A trusted site is a regular expression of 1 to {_LONGEST_SITE} characters.")
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise BadAttribute(f"{pattern[:100]!r} is no regular expression: {error}.") from error


_PUT = sa.text(
    "INSERT INTO configurations (name, content, modified) VALUES (:name, :content, :modified) "
    "ON CONFLICT (name) DO UPDATE SET content = excluded.content, modified = excluded.modified"
).bindparams(sa.bindparam("modified", type_=sa.BigInteger))

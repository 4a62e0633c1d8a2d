"""Security events: who did what, with which client and resource, from where, with which result (docs/operations.md).

An event holds no token, password, secret or cookie, and a stranger's name only if something of that name exists. No log
level filters it, and no request waits for it or fails with it (decision 0028).
"""

import os
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
import structlog

from muniment.ground.clock import timestamp
from muniment.ground.tally import Count, Tally

Kind = Literal[
    "sign-in",
    "sign-out",
    "pause",
    "revocation",
    "impersonation",
    "activation",
    "system attribute",
    "acl",
    "object rights",
    "object type",
    "user or group",
    "resource",
    "oauth client",
    "system configuration",
    "command",
]
Result = Literal["done", "refused", "failed"]

KINDS: Mapping[Kind, str] = {
    "sign-in": "a password grant, the grant of a code or a device, the sign-in form, HTTP Basic at a repository, the "
    "search page, or a program's ticket",
    "sign-out": "the button of the sign-in page, or of the search page",
    "pause": "so many wrong passwords from one place that sign-in pauses there",
    "revocation": "a token ended by its holder, and its grant with it",
    "impersonation": "a ticket, or a token by exchange, with which a client, a resource or an administrator (`who`) "
    "acts as a user (`on`)",
    "activation": "a resource activated, which discloses its secret",
    "system attribute": "a system attribute added, changed or deleted",
    "acl": "an ACL made, changed, removed, or put on an object",
    "object rights": "an object's ACL or owner changed with its properties",
    "object type": "an object type made, changed or removed",
    "user or group": "a user or group made, changed or removed at a repository, or put into a group or taken out",
    "resource": "a resource or its access role made, changed or removed by REST",
    "oauth client": "an OAuth client made, changed or removed by REST",
    "system configuration": "trusted sites, the password policy or what is asked of the audit, set by REST",
    "command": "a change by the command line",
}

FIELDS: Mapping[str, str] = {
    "timestamp": "when, in UTC",
    "event": "the kind",
    "result": "`done`, `refused`, or `failed` (not decided, because of load, a full disk or an error)",
    "who": "the user id; for a command, the user of the operating system; absent if no such user exists",
    "client": "the OAuth client",
    "resource": "the resource, or the repository",
    "origin": "the address the request came from, or `command line`",
    "on": "what was changed",
    "how": "the way, or the options; of what was refused by REST, its method and address; "
    "never a value that may be secret",
    "reason": "why a sign-in was refused; the answer does not tell it",
    "count": "how many more events like this one came within the minute and were not written",
    "request_id": "the id of the request, which its other log lines and the answer also have",
}

_MINUTE = 60_000_000
_SEPARATOR = "\x1f"

_log = structlog.wrap_logger(
    None, wrapper_class=structlog.make_filtering_bound_logger(0), logger_factory_args=("muniment.events",)
)

_F = TypeVar("_F", bound=Callable[..., Any])


class Event(msgspec.Struct, omit_defaults=True):
    """``Recorder`` counts by ``account``, which is never written, or by ``who`` if ``account`` is empty."""

    event: Kind
    result: Result | None = None
    who: str | None = None
    client: str | None = None
    resource: str | None = None
    origin: str | None = None
    on: str | None = None
    how: str | dict[str, Any] | None = None
    reason: str | None = None
    count: int | None = None
    request_id: str | None = None
    account: str = ""


def begin(scope: MutableMapping[str, Any], kind: Kind, **fields: Any) -> Event:
    """``Witness`` completes it and records it after the answer."""
    event = Event(kind, **fields)
    scope.setdefault("muniment.events", []).append(event)
    return event


def tells(*kinds: Kind) -> Callable[[_F], _F]:
    """Mark an endpoint with the kinds of event that it may begin."""

    def mark(endpoint: _F) -> _F:
        endpoint.__dict__["events"] = kinds
        return endpoint

    return mark


class Recorder:
    """Appends events to the file ``path`` (mode 0600); ``limited`` ones, which commands are not, go to the log, too."""

    def __init__(self, path: Path | None, counts: Path | None = None, *, limited: bool = True) -> None:
        self._path = path
        self._limited = limited
        self._tally = Tally(counts)
        self._torn = False

    def record(self, event: Event, now: int) -> None:
        """With ``limited``, at most ten refusals and failures a minute are written for each account and kind."""
        minute = now // _MINUTE
        if event.result == "done" or not self._limited:
            self._write(event, now)
            return
        label = f"{event.event}{_SEPARATOR}{event.who or ''}"
        is_written, counts = self._tally.count(f"{event.event}{_SEPARATOR}{event.account or event.who}", label, minute)
        for count in counts:
            self._write(_count_event(count), now)
        if is_written:
            self._write(event, now)

    def settle(self, now: int, *, stopping: bool = False) -> None:
        """With ``stopping``, also write the counts of the present minute."""
        for count in self._tally.settle(now // _MINUTE, include_present=stopping):
            self._write(_count_event(count), now)

    def _write(self, event: Event, now: int) -> None:
        fields = msgspec.to_builtins(event)
        fields.pop("account", None)
        fields.pop("event")
        if self._limited:
            _log.info(event.event, **fields)
        if self._path is None:
            return
        moment = timestamp(now, precision="auto")
        line = msgspec.json.encode({"timestamp": moment, "event": event.event, **fields}) + b"\n"
        # An event that cannot be written is lost, as a log line is. The decision remains valid.
        with suppress(OSError):
            self._append(line)

    def _append(self, line: bytes) -> None:
        assert self._path is not None  # noqa: S101 - checked by the caller
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            line = b"\n" + line if self._torn else line
            self._torn = True
            self._torn = 0 < os.write(file, line) < len(line)
        finally:
            os.close(file)


def _count_event(count: Count) -> Event:
    kind, _, who = count.label.partition(_SEPARATOR)
    if not kind:
        return Event("sign-in", "refused", how="of many accounts", count=count.number)
    return Event(msgspec.convert(kind, Kind), "refused", who=who or None, count=count.number)

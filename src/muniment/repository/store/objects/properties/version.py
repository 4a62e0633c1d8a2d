"""Which version of its tree is this object, and which number and labels does it have? Who has it checked out?

Each version is an object; those of one tree share a chronicle id: the id of the first, ``1.0``. The next is ``1.1`` or
``2.0``; a branch of 1.1 begins with ``1.1.1.0``.

Source: docs/interface.md, ours 17.
"""

import re
from collections.abc import Collection, Sequence
from typing import Any, Literal

import msgspec

from muniment.ground.clock import Instant
from muniment.ground.naming import is_storable
from muniment.repository.refusals import WrongValue
from muniment.repository.store.objects.properties.properties import Value, milliseconds

CURRENT = "CURRENT"

MOST_LABELS = 20

LONGEST_LABEL = 32
LONGEST_COMMENT = 400

Policy = Literal["next-minor", "next-major", "branch-version"]

_FIRST_LABELS = ("1.0", CURRENT)
_MOST_PARTS = 32
_NUMBER = re.compile(r"[0-9.]+")
_labels = msgspec.json.Decoder(tuple[str, ...])


class Lock(msgspec.Struct, frozen=True):
    """A check-out: the user, their key, and its beginning."""

    owner: str
    owner_key: str
    since: Instant


class Version(msgspec.Struct, frozen=True):
    """The defaults are those of an object never checked in, whose own id is the chronicle id.

    ``antecedent_id`` is the version before, or None. ``labels`` has the number first. A ``former`` version is not the
    current one; a ``superseded`` one has a next on its branch. ``comment`` is that of the check-in.
    """

    chronicle_id: str | None = None
    antecedent_id: str | None = None
    labels: tuple[str, ...] = _FIRST_LABELS
    former: bool = False
    superseded: bool = False
    comment: str = ""
    lock: Lock | None = None

    @property
    def number(self) -> str:
        return self.labels[0]


FIRST = Version()
"""It was never checked in, and is not checked out: all columns of the version are null or 0."""


def columns(version: Version) -> dict[str, object]:
    lock = version.lock
    return {
        "chronicle_id": version.chronicle_id,
        "antecedent_id": version.antecedent_id,
        "labels": None if version.labels == _FIRST_LABELS else encode(version.labels),
        "former": int(version.former),
        "superseded": int(version.superseded),
        "comment": version.comment or None,
        "lock_owner": lock.owner if lock else None,
        "lock_owner_key": lock.owner_key if lock else None,
        "locked": lock.since if lock else None,
    }


def read(columns: Sequence[Any]) -> Version:
    chronicle_id, antecedent_id, labels, former, superseded, comment, owner, owner_key, since = columns
    if chronicle_id is None and owner_key is None:
        return FIRST
    return Version(
        chronicle_id,
        antecedent_id,
        decode(labels),
        bool(former),
        bool(superseded),
        comment or "",
        None if owner_key is None else Lock(owner, owner_key, since),
    )


def values(object_id: str, version: Version) -> dict[str, list[Value]]:
    lock = version.lock
    return {
        "r_version_label": list(version.labels),
        "i_chronicle_id": [version.chronicle_id or object_id],
        "i_antecedent_id": [version.antecedent_id] if version.antecedent_id else [],
        "i_latest_flag": [not version.superseded],
        "r_log_entry": [version.comment] if version.comment else [],
        "r_lock_owner": [lock.owner] if lock else [],
        "r_lock_date": [milliseconds(lock.since)] if lock else [],
    }


def encode(labels: Collection[str]) -> str:
    return msgspec.json.encode(tuple(labels)).decode()


def decode(labels: str | None) -> tuple[str, ...]:
    return _FIRST_LABELS if labels is None else _labels.decode(labels)


def next_number(number: str, policy: Policy, taken: Collection[str]) -> str:
    """``taken`` are all numbers of the tree. The first branch of 1.1 begins with 1.1.1.0, the second with 1.1.2.0.
    Raises WrongValue if branches would be nested too deep.
    """
    parts = _parts(number)
    if policy == "next-minor":
        last = parts[-1] + 1
        while _write((*parts[:-1], last)) in taken:  # after a restoration, a later version may have no link to this one
            last += 1
        return _write((*parts[:-1], last))
    stem = parts if policy == "branch-version" else parts[:-2]
    if len(stem) + 2 > _MOST_PARTS:
        raise WrongValue(f"The version {number!r} is nested in too many branches to have another one.")
    siblings = [each for each in map(_parts, taken) if len(each) == len(stem) + 2 and each[: len(stem)] == stem]
    return _write((*stem, max((each[-2] for each in siblings), default=0) + 1, 0))


def is_on_branch_of(number: str, antecedent: str) -> bool:
    """If not, it began a new branch."""
    return len(_parts(number)) == len(_parts(antecedent))


def read_labels(text: str) -> tuple[str, ...]:
    """Read labels between commas, without ``CURRENT``.

    Raises WrongValue.
    """
    labels = tuple(dict.fromkeys(label for part in text.split(",") if (label := part.strip())))
    for label in labels:
        if len(label) > LONGEST_LABEL or not label.isprintable() or _NUMBER.fullmatch(label):
            raise WrongValue(
                f"A version label has 1 to {LONGEST_LABEL} printable characters and is not a number, "
                f"unlike {label[:60]!r}."
            )
    if len(labels) > MOST_LABELS:
        raise WrongValue(f"A version has at most {MOST_LABELS} labels besides its number.")
    return tuple(label for label in labels if label.upper() != CURRENT)


def read_comment(text: str) -> str:
    """Raises WrongValue."""
    if len(text) > LONGEST_COMMENT or not is_storable(text):
        raise WrongValue(f"The comment of a check-in has at most {LONGEST_COMMENT} characters of Unicode text.")
    return text


def names_current(text: str) -> bool:
    return any(part.strip().upper() == CURRENT for part in text.split(","))


def _parts(number: str) -> tuple[int, ...]:
    return tuple(map(int, number.split(".")))


def _write(parts: Collection[int]) -> str:
    return ".".join(map(str, parts))

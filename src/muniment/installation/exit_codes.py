"""How does a command end? With an exit code and, after an error, why, and what to do next."""

import errno
from collections.abc import Mapping
from enum import IntEnum

import sqlalchemy.exc

from muniment.database.connections import Busy, Unwritable
from muniment.database.driver_errors import is_damaged
from muniment.database.schema import SchemaMismatch
from muniment.directory.refusals import (
    CannotKnow,
    NobodyAdministers,
    SignsIn,
    StillGuards,
    UnknownAttribute,
    UnknownClient,
    UnknownEntry,
    UnknownGroup,
    UnknownPartition,
    UnknownResource,
    UnknownSession,
)
from muniment.ground.certificates import CertificateProblem
from muniment.ground.refusals import Refusal
from muniment.integration import person_removal
from muniment.repository.refusals import IndexUnavailable, UnknownAcl, UnknownRepository, UnknownType

_LISTING_COMMANDS: Mapping[type[Refusal], str] = {
    UnknownPartition: "partition list",
    UnknownEntry: "user list PARTITION",
    UnknownGroup: "group list PARTITION",
    UnknownClient: "client list",
    UnknownResource: "resource list",
    UnknownSession: "user sessions NAME@PARTITION",
    UnknownRepository: "repository list",
    UnknownType: "type list",
    UnknownAcl: "acl list",
}
_NEXT_STEPS: Mapping[type[Refusal], str] = {
    UnknownAttribute: "With --free it is set all the same.",
    NobodyAdministers: "'muniment group add-member' does that.",
    StillGuards: "First let another resource guard it, with 'muniment repository guard'.",
    CannotKnow: "If none does, add --force.",
    SignsIn: "Or let 'muniment client' do it with --force.",
    person_removal.OwnsElsewhere: "'muniment repository give' does that.",
}
_OS_ERROR_STEPS: Mapping[int, str] = {
    errno.EACCES: " Let this user write there, or name another place.",
    errno.EPERM: " It belongs to another user: name another place.",
    errno.EROFS: " That disk is mounted read-only: name another place.",
    errno.ENOSPC: " Make room on that disk, then try again.",
    errno.EDQUOT: " Make room there, then try again.",
}

_NO_PRIVILEGE = "42501"
"""PostgreSQL's code for a role that lacks a privilege."""

_UNWRITABLE_STEPS: Mapping[str, str] = {
    "is full": " Make room on that disk, then try again.",
    "read-only": " Let this user write to the data folder and the files in it.",
    "reports an error": " Check that disk, and make room on it if it is full, then try again.",
}


class Exit(IntEnum):
    """README.md explains them."""

    OK = 0
    FAILED = 1
    USAGE = 2
    REFUSED = 3
    IN_USE = 4
    NOT_READY = 5


class Failure(Exception):
    """The command cannot go on, for this reason; the sentence says what to do next."""

    def __init__(self, sentence: str, code: Exit = Exit.FAILED) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.code = code


def as_failure(error: BaseException) -> Failure | None:
    """None stands for a bug, of which the caller shows the traceback."""
    failure: Failure | None
    match error:
        case Failure():
            failure = error
        case IndexUnavailable():
            failure = Failure(f"{error.sentence} Start 'muniment serve' or 'muniment agent'.", Exit.NOT_READY)
        case Refusal():
            listing, next_step = _LISTING_COMMANDS.get(type(error)), _NEXT_STEPS.get(type(error))
            failure = Failure(
                error.sentence
                + (f" 'muniment {listing}' lists those that exist." if listing else "")
                + (f" {next_step}" if next_step else ""),
                Exit.REFUSED,
            )
        case CertificateProblem():
            failure = Failure(str(error), Exit.REFUSED)
        case SchemaMismatch():
            failure = Failure(str(error), Exit.NOT_READY)
        case Unwritable():
            to_do = next((to_do for reason, to_do in _UNWRITABLE_STEPS.items() if reason in str(error)), "")
            failure = Failure(f"{error}{to_do}")
        case Busy():
            failure = Failure(f"{error} Try again in a moment.")
        case sqlalchemy.exc.DBAPIError():
            failure = _database_failure(error)
        case OSError():
            file_name = f"{error.filename}: " if error.filename else ""
            failure = Failure(f"{file_name}{error.strerror or error}.{_OS_ERROR_STEPS.get(error.errno or 0, '')}")
        case _:
            failure = None
    return failure


def _database_failure(error: sqlalchemy.exc.DBAPIError) -> Failure | None:
    # SQLAlchemy's own message repeats the statement. The first line of the driver's message is enough here.
    reason = str(error.orig).strip().partition("\n")[0]
    if is_damaged(error):
        return Failure(f"The database is damaged: {reason}. Check its disk, then restore a backup.")
    if getattr(error.orig, "sqlstate", None) == _NO_PRIVILEGE:
        return Failure(
            f"PostgreSQL refuses: {reason}. Let the role that the address names own the database.", Exit.REFUSED
        )
    if isinstance(error, sqlalchemy.exc.OperationalError | sqlalchemy.exc.InterfaceError):
        return Failure(_database_sentence(reason))
    return None


def _database_sentence(reason: str) -> str:
    if "disk is full" in reason:
        return f"The database cannot grow: {reason}. Make room on that disk, then try again."
    if "disk I/O error" in reason:
        return f"The database cannot be used: {reason}. Make room on its disk, or check that disk, then try again."
    if "is locked" in reason:
        return f"The database is busy: {reason}. Try again in a moment."
    if "readonly database" in reason or "unable to open database file" in reason:
        return f"The database cannot be written: {reason}. Let this user write to the data folder and the files in it."
    return f"The database cannot be reached: {reason}. Check the address in the settings."

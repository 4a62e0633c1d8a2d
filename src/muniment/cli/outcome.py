"""How a command ends: its exit codes, and errors as one sentence that says what to do next."""

from enum import IntEnum

import sqlalchemy.exc

from muniment.db import Busy, SchemaMismatch
from muniment.web.refusals import Refusal


class Exit(IntEnum):
    """The exit codes of ``muniment``, as README.md explains them."""

    OK = 0
    FAILED = 1
    USAGE = 2
    REFUSED = 3
    IN_USE = 4
    NOT_READY = 5


class Failure(Exception):
    """The command cannot go on; the sentence says why and what to do next."""

    def __init__(self, sentence: str, code: Exit = Exit.FAILED) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.code = code


def as_failure(error: BaseException) -> Failure | None:
    """Say an exception in one sentence with its exit code; None when it is a bug that deserves its trace."""
    failure: Failure | None = None
    match error:
        case Failure():
            failure = error
        case Refusal():
            failure = Failure(error.sentence, Exit.REFUSED)
        case SchemaMismatch():
            failure = Failure(str(error), Exit.NOT_READY)
        case Busy():
            failure = Failure(f"{error} Try again in a moment.")
        case sqlalchemy.exc.OperationalError() | sqlalchemy.exc.InterfaceError():
            # SQLAlchemy's own message carries the statement; the driver's first line is what a person can use.
            reason = str(error.orig).strip().partition("\n")[0]
            failure = Failure(f"The database cannot be reached: {reason}. Check the address in the settings.")
        case OSError():
            named = f"{error.filename}: " if error.filename else ""
            failure = Failure(f"{named}{error.strerror or error}.")
    return failure

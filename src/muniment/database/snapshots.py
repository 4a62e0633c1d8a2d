"""What has a snapshot answered already, and what can be written at once? Then the database is not asked again."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from sqlalchemy.engine import Connection

T = TypeVar("T")

ANSWERED = "muniment_answered"
"""The option of a connection that holds what its snapshot has answered; one that writes has none."""

LATER = "muniment_later"
"""The option of a connection that holds what is run at the end of a block."""


class _WithoutAnswer(Protocol):
    def run_for_each(self, cx: Connection, rows: Sequence[Mapping[str, Any]]) -> None: ...


def of_snapshot(connection: Connection, question: Hashable, ask: Callable[[Connection], T]) -> T:
    """Ask once in each snapshot, and in a transaction that writes each time, but in a block of ``run_together``."""
    answered = connection.get_execution_options().get(ANSWERED)
    if answered is None:
        return ask(connection)
    if question not in answered:
        answered[question] = ask(connection)
    answer: T = answered[question]
    return answer


@contextmanager
def run_together(connection: Connection) -> Iterator[None]:
    """The block writes nothing that ``of_snapshot`` is asked for in it. What it runs without an answer
    (``PreparedStatement``) it does not read: this is run at its end, each statement once with all its rows.
    """
    later: dict[_WithoutAnswer, list[Mapping[str, Any]]] = {}
    connection.execution_options(**{ANSWERED: {}, LATER: later})
    try:
        yield
    finally:
        connection.execution_options(**{ANSWERED: None, LATER: None})
    for statement, rows in later.items():
        statement.run_for_each(connection, rows)

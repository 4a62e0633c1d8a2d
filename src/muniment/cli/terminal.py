"""What a command prints: tables for people, plain lines where nobody watches, secrets once and never in an argument."""

import getpass
import re
import secrets
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from muniment.exit_codes import Exit, Failure

console = Console(highlight=False, soft_wrap=True)
"""Standard output."""

errors = Console(stderr=True, highlight=False, soft_wrap=True)
"""Standard error: progress and complaints."""

_LINE_SECONDS = 2.0

# What a terminal obeys instead of showing: control characters, line ends, changes of direction.
_OBEYED = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def line(text: str = "") -> None:
    """Print one line as it is, at once also where a pipe would keep it back."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def harmless(text: str) -> str:
    """Spell a stranger's text so that it stays on its line and a terminal only shows it."""
    return _OBEYED.sub("\N{REPLACEMENT CHARACTER}", text)


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table to a terminal, or one line a row with tabs between."""
    if not console.is_terminal:
        sys.stdout.writelines("\t".join(harmless(str(cell)) for cell in row) + "\n" for row in rows)
        return
    drawn = Table(box=None, header_style="bold")
    for head in heads:
        drawn.add_column(head, overflow="fold")
    for row in rows:
        drawn.add_row(*[harmless(str(cell)).replace("[", r"\[") for cell in row])
    console.print(drawn)


def new_password(*, from_stdin: bool, random: bool) -> tuple[str, bool]:
    """Get a new password from standard input, made up, or typed twice; and whether it was made up, to be shown once."""
    if random:
        return secrets.token_urlsafe(12), True
    if from_stdin:
        password = sys.stdin.readline().rstrip("\n")
    elif not sys.stdin.isatty():
        raise Failure("No password: give it with --password-stdin, or have one made with --random.", Exit.USAGE)
    else:
        password = getpass.getpass("Password: ")
        if getpass.getpass("Again: ") != password:
            raise Failure("The two are not the same; nothing was changed.", Exit.USAGE)
    if not password:
        raise Failure("The password is empty; nothing was changed.", Exit.USAGE)
    return password, False


class Counting:
    """A count that grows while a person watches: a bar on a terminal, a line now and then elsewhere."""

    def __init__(self, what: str, total: int | None) -> None:
        self._what = what
        self._total = total
        self._done = 0
        self._told = time.monotonic()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=errors,
            transient=True,
            disable=not errors.is_terminal,
        )
        self._task = self._bar.add_task(what, total=total)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._bar.stop()

    def reach(self, done: int, total: int | None = None) -> None:
        """Say how far it is, and out of how many when that has become known."""
        self._done = done
        self._total = self._total if total is None else total
        self._bar.update(self._task, completed=done, total=self._total)
        if not errors.is_terminal and time.monotonic() - self._told >= _LINE_SECONDS:
            self._told = time.monotonic()
            errors.print(f"{self._what}: {done}" + (f" of {self._total}" if self._total is not None else ""))

    def advance(self) -> None:
        """One more."""
        self.reach(self._done + 1)


def counting(what: str, total: int | None) -> Counting:
    """Show a count while the block runs."""
    return Counting(what, total)

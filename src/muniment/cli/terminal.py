"""How do commands print, and how do they read secrets?

They print tables on a terminal, plain lines elsewhere, and JSON on request. A secret comes from a terminal, standard
input or the environment, never from an argument.
"""

import getpass
import json
import re
import secrets
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Annotated, Any, Self

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from muniment.installation.exit_codes import Exit, Failure

console = Console(highlight=False, soft_wrap=True)

errors = Console(stderr=True, markup=False, emoji=False, highlight=False, soft_wrap=True)
"""Standard error. Texts are printed as they are, whatever brackets or colons they hold."""

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead: the same values, under the same names.")]
WithHeader = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="Print column headings, or none; otherwise on a terminal only."),
]

_LINE_SECONDS = 2.0

# Characters that a terminal obeys instead of showing: controls, line ends, changes of writing direction.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def line(text: str = "") -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def number_of(count: int, noun: str) -> str:
    """ "1 object", "2 objects"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def harmless(text: str) -> str:
    """Replace the characters of an untrusted text that would break its line or control the terminal."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


def table(
    heads: Sequence[str], rows: Iterable[Sequence[object]], *, as_json: bool = False, header: bool | None = None
) -> None:
    """Print a table on a terminal, elsewhere a line for each row with tabs between the cells, or a list of JSON
    objects.

    JSON's names are the headings in lower case, with _ for each blank. By default, ``header`` is for terminals only.
    """
    if as_json:
        names = [head.lower().replace(" ", "_") for head in heads]
        print_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    if not console.is_terminal:
        lines = [heads, *rows] if header else rows
        sys.stdout.writelines("\t".join(map(_cell, row)) + "\n" for row in lines)
        return
    table_ = Table(box=None, header_style="bold", show_header=header is not False)
    for head in heads:
        table_.add_column(head, overflow="fold")
    for row in rows:
        table_.add_row(*[Text(_cell(cell)) for cell in row])
    console.print(table_)


def record(values: Mapping[str, object], *, as_json: bool = False, header: bool | None = None) -> None:
    """Print the attributes of one thing, with a row for each value. As JSON, one object; a list stays a list."""
    if as_json:
        print_json(values)
        return
    rows = [
        (name, value)
        for name, some in values.items()
        for value in (some if isinstance(some, list | tuple) else [some])
        if value is not None
    ]
    table(("Attribute", "Value"), rows, header=header)


def print_json(value: Any) -> None:
    """In ASCII, with escapes for the characters that control a terminal."""
    line(json.dumps(value, indent=2, default=str))


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(_cell, value))
    return "" if value is None else harmless(str(value))


def new_password(*, from_stdin: bool, random: bool) -> str:
    """Read or generate a new password. Raises Failure."""
    if random and from_stdin:
        raise Failure("--password-stdin and --random do not go together: give one of them.", Exit.USAGE)
    if random:
        return secrets.token_urlsafe(12)
    if from_stdin:
        return sys.stdin.readline().rstrip("\n")
    if not sys.stdin.isatty():
        raise Failure("No password: give it with --password-stdin, or generate one with --random.", Exit.USAGE)
    password = getpass.getpass("Password: ")
    if getpass.getpass("Again: ") != password:
        raise Failure("The two passwords differ; nothing was changed.", Exit.USAGE)
    return password


class Counting:
    """Shows a growing count while a block runs: a bar on a terminal, elsewhere a line now and then."""

    def __init__(self, what: str, total: int | None) -> None:
        self._what = harmless(what)
        self._total = total
        self._count = 0
        self._printed_at = time.monotonic()
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=errors,
            transient=True,
            disable=not errors.is_terminal,
        )
        self._task = self._bar.add_task(self._what, total=total)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._bar.stop()

    def reach(self, count: int, total: int | None = None) -> None:
        self._count = count
        self._total = self._total if total is None else total
        self._bar.update(self._task, completed=count, total=self._total)
        if not errors.is_terminal and time.monotonic() - self._printed_at >= _LINE_SECONDS:
            self._printed_at = time.monotonic()
            errors.print(f"{self._what}: {count}" + (f" of {self._total}" if self._total is not None else ""))

    def advance(self) -> None:
        self.reach(self._count + 1)


class Bars(ExitStack):
    """Shows several growing counts, one after the other."""

    _what = ""
    _bar: Counting | None = None

    def reach(self, what: str, count: int, total: int | None = None) -> None:
        if self._bar is None or what != self._what:
            self.close()
            self._what, self._bar = what, self.enter_context(Counting(what, total))
        self._bar.reach(count, total)

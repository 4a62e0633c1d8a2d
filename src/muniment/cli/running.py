"""How does a command run? It gets what it asks for, and returns what is printed when its transaction has ended.

It asks by parameters: ``data`` is the data folder, ``cx`` a transaction of a half's database, ``repository`` the one
that ``--repository`` names, ``repository_name`` its name, and ``principals`` the data folder's administrator, with
whose rights it acts.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import Annotated, Any, Literal, TypeVar

import typer

from muniment.cli import audit, terminal
from muniment.database.audit import acting
from muniment.database.connections import Half
from muniment.ground.clock import now
from muniment.installation import initialise
from muniment.repository.store import repositories

F = TypeVar("F", bound=Callable[..., Any])

Rows = Iterable[tuple[object, ...]]

RepositoryOption = Annotated[str, typer.Option("--repository", "-r", help="Name of the repository.")]

_Access = Literal["none", "read", "write"]
_GIVEN = {"data", "context", "cx", "principals"}
_OPTION = inspect.Parameter.KEYWORD_ONLY


class Group(typer.Typer):
    """Commands about what the database of ``half`` holds."""

    def __init__(self, half: Half = "repository", **options: Any) -> None:
        super().__init__(no_args_is_help=True, **options)
        self._half = half

    def acts(self, name: str, *, recorded: bool = True, hidden: bool = False) -> Callable[[F], F]:
        """For a command that opens its transactions itself. It may return an exit code."""
        return lambda command: self._register(name, command, "none", recorded=recorded, hidden=hidden)

    def writes(self, name: str) -> Callable[[F], F]:
        """For a command in one write transaction. It may return a line to print."""
        return lambda command: self._register(name, command, "write")

    def reads(self, name: str, *heads: str) -> Callable[[F], F]:
        """For a command in one snapshot. It returns the rows of a table with these headings."""
        return lambda command: self._register(name, command, "read", heads, recorded=False)

    def _register(
        self,
        name: str,
        command: F,
        access: _Access,
        heads: tuple[str, ...] = (),
        *,
        recorded: bool = True,
        hidden: bool = False,
    ) -> F:
        parameters = inspect.signature(command, eval_str=True).parameters

        def run(context: typer.Context, **arguments: Any) -> Any:
            with acting(audit.operator(), now), ExitStack() as stack:
                given: dict[str, Any] = {"data": context.obj, "context": context}
                if "principals" in parameters:
                    given["principals"] = initialise.administrator(context.obj)
                if access != "none":
                    opened = context.obj.read if access == "read" else context.obj.begin
                    given["cx"] = stack.enter_context(opened(self._half))
                if "repository" in parameters:
                    given["repository"] = repositories.find(given["cx"], arguments.pop("repository_name"))
                own = given | arguments
                answer = command(**{name: own[name] for name in parameters})
                if heads:
                    answer = list(answer)
            if access == "read":
                shown = {name: arguments[name] for name in ("as_json", "header")}
                terminal.table(heads, answer, **shown) if heads else terminal.record(answer, **shown)
            elif isinstance(answer, str):
                terminal.line(answer)
            return answer if isinstance(answer, int) else None

        run.__doc__ = command.__doc__
        run.__signature__ = inspect.Signature([*_options(parameters, access)])  # type: ignore[attr-defined] # where typer looks for options
        self.command(name, hidden=hidden)(audit.recording(run) if recorded else run)
        return command


def _options(parameters: Mapping[str, inspect.Parameter], access: _Access) -> Iterator[inspect.Parameter]:
    yield inspect.Parameter("context", _OPTION, annotation=typer.Context)
    named = {"repository", "repository_name"} & {
        name for name, each in parameters.items() if each.default is each.empty
    }
    yield from (each.replace(kind=_OPTION) for name, each in parameters.items() if name not in _GIVEN | named)
    if named:
        default = initialise.REPOSITORY
        yield inspect.Parameter("repository_name", _OPTION, annotation=RepositoryOption, default=default)
    if access == "read":
        yield inspect.Parameter("as_json", _OPTION, annotation=terminal.AsJson, default=False)
        yield inspect.Parameter("header", _OPTION, annotation=terminal.WithHeader, default=None)

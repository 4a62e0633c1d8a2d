"""How do commands about repositories find a guarding resource, and check a language?"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Annotated

import typer
from sqlalchemy.engine import Connection

from muniment.directory.administration import resource_decisions
from muniment.directory.entries.resources import Resource
from muniment.installation import backends
from muniment.installation.data_folder import DataFolder
from muniment.installation.exit_codes import Exit, Failure

RepositoryName = Annotated[str, typer.Argument(metavar="NAME")]
GuardName = Annotated[str, typer.Option(help="Name of the resource that guards the repository; made if missing.")]
GuardId = Annotated[
    str,
    typer.Option(
        help="Identifier of an existing resource, instead of its name; needed where the directory runs apart."
    ),
]


def check_guard(resource: str, resource_id: str) -> None:
    if resource and resource_id:
        raise Failure("Name the resource with --resource or with --resource-id, not with both.", Exit.USAGE)


def known_language(data: DataFolder, text: str) -> str:
    """An empty text stays empty. Raises Failure for an unknown one."""
    languages = {language.casefold(): language for language in backends.engine(data.installation).languages()}
    if text and text.casefold() not in languages:
        raise Failure(f"There are no stems for {text!r}; choose one of {', '.join(languages.values())}.", Exit.USAGE)
    return languages.get(text.casefold(), "")


@contextmanager
def both(data: DataFolder, resource_id: str) -> Iterator[tuple[Connection | None, Connection]]:
    """Open the directory's transaction, then the repository's.

    The directory's is None if ``resource_id`` is one of a directory that runs apart.
    """
    with (
        data.begin("directory") if data.together or not resource_id else nullcontext() as directory,
        data.begin("repository") as cx,
    ):
        yield directory, cx


def resource_of(data: DataFolder, name: str) -> Resource:
    """Raises Failure if the directory runs apart."""
    if "directory" not in data.settings.halves:
        raise Failure("The directory runs apart: name a resource of it with --resource-id.", Exit.USAGE)
    with data.begin("directory") as cx:
        return resource_decisions.ensure_resource(cx, data.settings.directory.names, name, data.now)

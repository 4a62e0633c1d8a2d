"""Search from a terminal: as a user of a running server, or as the administrator of the data folder."""

import getpass
import os
import ssl
import sys
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import httpx
import lxml.etree
import typer

from muniment import app, initialise
from muniment.cli import terminal
from muniment.clock import SECOND, Instant
from muniment.data_folder import DataFolder
from muniment.directory import names, resources
from muniment.exit_codes import Exit, Failure
from muniment.repository import repositories
from muniment.repository.aql import keywords
from muniment.repository.aql.tree import Fulltext, Query, QueryLimits
from muniment.repository.change_log import changes
from muniment.repository.search import results
from muniment.repository.search.results import SearchQuestion

_ATOM = "{http://www.w3.org/2005/Atom}"
_LATE: Instant = 5 * SECOND
_Hit = tuple[str, str, str, str]


def search_command(
    context: typer.Context,
    words: Annotated[str, typer.Argument(metavar="WORDS", help='Keywords: words, "phrases", AND OR NOT ( ) word*')],
    repository_name: Annotated[
        str, typer.Option("--repository", "-r", help="Name of the repository.")
    ] = initialise.REPOSITORY,
    user: Annotated[
        str,
        typer.Option(metavar="NAME@PARTITION", help="Ask the running server as this user; otherwise as administrator."),
    ] = "",
    client: Annotated[str, typer.Option(help="The client to sign in with.")] = initialise.CLIENT,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Show no more hits than this.")] = 10,
    ca_file: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="CA certificates of the server; otherwise the data folder's."),
    ] = None,
) -> int:
    """Search and print the hits.

    A user's password is asked for, or read from MUNIMENT_PASSWORD; MUNIMENT_TOKEN may hold an access token instead.
    """
    data: DataFolder = context.obj
    token = os.environ.get("MUNIMENT_TOKEN", "")
    if user or token:
        total, hits = _as_user(data, words, repository_name, user, client, limit, ca_file, token)
    else:
        total, hits = _as_administrator(data, words, repository_name, limit)
    terminal.line(f"{total} found")
    for object_id, title, score, summary in hits:
        terminal.line(terminal.harmless(f"{score}  {object_id}  {title}"))
        if summary:
            terminal.line(terminal.harmless(f"      {' '.join(summary.split())}"))
    return Exit.OK


def _as_administrator(data: DataFolder, words: str, repository_name: str, limit: int) -> tuple[int, list[_Hit]]:
    options = data.settings.repository
    expression = keywords.read(words, QueryLimits(options.max_query_depth, options.max_query_clauses))
    with data.database("repository") as database:
        with database.read() as cx:
            repository = repositories.find(cx, repository_name)
        reader = app.reader(data.installation, repository)
        try:
            snapshot = reader.snapshot()
            page = results.search(
                database,
                snapshot,
                repository,
                initialise.administrator(data),
                SearchQuestion(Query(condition=Fulltext(expression)), 1, limit, include_total=True),
                options.max_page_offset,
                options.max_pending_changes,
            )
        finally:
            reader.close()
        with database.read() as cx:
            unseen = changes.after(cx, repository.id, snapshot.position, 1)
    if unseen and data.now - unseen[0].noted > _LATE:
        terminal.errors.print(
            "The index has not moved for a while, so changes are missing from these results: is 'muniment serve' or "
            "'muniment agent' running? 'muniment index status' says how far it is."
        )
    return page.total or 0, [(hit.object_id, hit.title, f"{hit.score:.3f}", hit.summary) for hit in page.hits]


def _as_user(
    data: DataFolder,
    words: str,
    repository_name: str,
    user: str,
    client: str,
    limit: int,
    ca_file: Path | None,
    token: str,
) -> tuple[int, list[_Hit]]:
    settings = data.settings
    context = _tls_context(data, ca_file)
    base = data.installation.base
    try:
        with httpx.Client(base_url=base, verify=context, timeout=60, trust_env=False) as http:
            bearer = token or _sign_in(data, http, repository_name, user, client)
            answer = http.get(
                f"/{settings.repository.names.prefix}/repositories/{quote(repository_name, safe='')}/search",
                params={"q": words, "items-per-page": str(limit), "include-total": "true"},
                headers={"Authorization": f"Bearer {bearer}", "Accept": "application/atom+xml"},
            )
    except httpx.TransportError as error:
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            raise Failure(
                f"{base} shows a certificate that is not trusted here ({error}): "
                "name its CA's certificate with --ca-file.",
                Exit.REFUSED,
            ) from error
        raise Failure(f"{base} cannot be reached ({error}): is 'muniment serve' running?", Exit.NOT_READY) from error
    if answer.status_code != 200:
        raise Failure(f"The server answered {answer.status_code}: {_message(answer)}", Exit.REFUSED)
    return _read_feed(
        answer.content, settings.repository.names.vocab_namespace, settings.repository.names.relevance_namespace
    )


def _tls_context(data: DataFolder, ca_file: Path | None) -> ssl.SSLContext:
    own_ca = data.installation.tls / "ca.pem"
    trust = ca_file or (own_ca if own_ca.exists() else None)
    try:
        return ssl.create_default_context(cafile=trust)
    except ssl.SSLError as error:
        raise Failure(f"{trust} holds no certificate (PEM): name the CA's certificate with --ca-file.") from error


def _message(answer: httpx.Response) -> str:
    try:
        message = lxml.etree.fromstring(answer.content, _parser()).xpath("string(//*[local-name()='message'])")
    except lxml.etree.XMLSyntaxError:
        message = ""
    return str(message) or answer.text[:500]


def _parser() -> lxml.etree.XMLParser:
    return lxml.etree.XMLParser(resolve_entities=False, no_network=True)


def _sign_in(data: DataFolder, http: httpx.Client, repository_name: str, user: str, client: str) -> str:
    password = os.environ.get("MUNIMENT_PASSWORD", "")
    if not password:
        if not sys.stdin.isatty():
            raise Failure("No password: put it into the environment variable MUNIMENT_PASSWORD.", Exit.USAGE)
        password = getpass.getpass(f"Password of {user}: ")
    directory = data.settings.directory.names
    with data.database("repository") as database, database.read() as cx:
        resource_id = repositories.find(cx, repository_name).resource_id
    with data.database("directory") as database, database.read() as cx:
        scope = names.scope(resources.shown_name(directory, resources.by_id(cx, resource_id)))
    form = {"grant_type": "password", "client_id": client, "username": user, "password": password, "scope": scope}
    answer = http.post(f"/{directory.prefix}/login", data=form)
    if answer.status_code != 200:
        raise Failure(f"Not signed in: {answer.json().get('error_description', answer.text[:300])}", Exit.REFUSED)
    return str(answer.json()["access_token"])


def _read_feed(document: bytes, vocabulary: str, relevance: str) -> tuple[int, list[_Hit]]:
    root = lxml.etree.fromstring(document, _parser())
    hits = [
        (
            entry.findtext(f"{_ATOM}id", ""),
            entry.findtext(f"{_ATOM}title", ""),
            entry.findtext(f"{{{relevance}}}score", ""),
            entry.findtext(f"{_ATOM}summary", ""),
        )
        for entry in root.findall(f"{_ATOM}entry")
    ]
    return int(root.findtext(f"{{{vocabulary}}}total", "0")), hits

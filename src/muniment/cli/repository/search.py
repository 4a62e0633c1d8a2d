"""Search from a terminal: as a user of the running server, or as the administrator of the data folder."""

import getpass
import os
import ssl
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any, NamedTuple
from urllib.parse import quote

import httpx
import typer

from muniment.cli import terminal
from muniment.cli.repository import explaining
from muniment.directory.entries import names, resources
from muniment.ground.clock import SECOND, Instant
from muniment.installation import initialise
from muniment.installation.data_folder import DataFolder
from muniment.installation.exit_codes import Exit, Failure
from muniment.repository.api.endpoints.search import search_requests
from muniment.repository.api.wire import parameters
from muniment.repository.search.answering import results
from muniment.repository.search.answering.inquiry import SearchQuestion, WordsNeeded
from muniment.repository.search.aql import keywords, tree, typed
from muniment.repository.search.aql.spelling import as_json, as_xml
from muniment.repository.store import repositories
from muniment.repository.store.change_log import changes
from muniment.repository.store.objects.listing.view import RepositoryView

_LATE: Instant = 5 * SECOND


class _Question(NamedTuple):
    """With ``typed``, the keywords are read as people type."""

    words: str
    document: bytes | None
    repository_name: str
    limit: int
    words_needed: WordsNeeded = "all"
    typed: bool = False


class _Hit(NamedTuple):
    id: str
    title: str
    score: float
    summary: str


class _Answer(NamedTuple):
    """If ``relaxed`` is true, hits need not have all of the words."""

    total: int
    hits: list[_Hit]
    relaxed: bool


def search_command(
    data: DataFolder,
    repository_name: str,
    words: Annotated[
        str | None,
        typer.Argument(
            metavar="[WORDS]",
            help="Keywords: words, \"phrases\", AND OR NOT ( ) word*. An empty text ('') finds all that is visible.",
        ),
    ] = None,
    aql: Annotated[
        str,
        typer.Option(
            "--aql", metavar="FILE", help="A search document (AQL in XML or JSON) instead; - for standard input."
        ),
    ] = "",
    user: Annotated[
        str,
        typer.Option(metavar="NAME@PARTITION", help="Ask the running server as this user; otherwise as administrator."),
    ] = "",
    client: Annotated[str, typer.Option(help="The client to sign in with.")] = initialise.CLIENT,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Show no more hits than this.")] = 10,
    all_words: Annotated[
        bool, typer.Option("--all-words", help="Show only what has all of the words, even if that is little.")
    ] = False,
    ca_file: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="CA certificates of the server; otherwise the data folder's and the system's.",
        ),
    ] = None,
    explained: Annotated[
        str, typer.Option("--explain", metavar="OBJECT", help="Say why this object is a hit, or why it is none.")
    ] = "",
    for_user: Annotated[
        str, typer.Option("--for", metavar="NAME@PARTITION", help="With --explain: a search with this user's rights.")
    ] = "",
    as_json: terminal.AsJson = False,
) -> int:
    """Search and print the hits. With --explain, say why an object is a hit or is none; if none, the exit code is 1.

    A user's password is asked for, or read from MUNIMENT_PASSWORD; MUNIMENT_TOKEN may hold an access token instead.
    """
    if (words is None) == (not aql):
        raise Failure("Give keywords, '' for all that is visible, or a search document with --aql FILE.", Exit.USAGE)
    default_words = search_requests.default_words(data.settings.repository)
    words_needed = default_words if words and not all_words else "all"
    document = _document(data, aql) if aql else None
    is_typed = document is None and default_words == "auto"
    question = _Question(words or "", document, repository_name, limit, words_needed, is_typed)
    token = os.environ.get("MUNIMENT_TOKEN", "")
    if for_user and not explained:
        raise Failure("--for goes with --explain.", Exit.USAGE)
    if explained:
        if user:
            raise Failure("An explanation is the administrator's: name the user with --for, not --user.", Exit.USAGE)
        return explaining.explain(data, _query(data, question), repository_name, explained, for_user, as_json=as_json)
    if user or token:
        answer = _as_user(data, question, user, client, ca_file, token)
    else:
        answer = _as_administrator(data, question)
    if as_json:
        terminal.print_json({"total": answer.total, "hits": [hit._asdict() for hit in answer.hits]})
        return Exit.OK
    order = ": what has all words first, then what has any of them (--all-words: only the former)"
    terminal.line(f"{answer.total} found{order if answer.relaxed else ''}")
    for hit in answer.hits:
        terminal.line(terminal.harmless(f"{hit.score:.3f}  {hit.id}  {hit.title}"))
        if hit.summary:
            terminal.line(terminal.harmless(f"      {' '.join(hit.summary.split())}"))
    return Exit.OK


def _document(data: DataFolder, file: str) -> bytes:
    limit = data.settings.repository.max_metadata_bytes
    with nullcontext(sys.stdin.buffer) if file == "-" else open(file, "rb") as source:
        document = source.read(limit + 1)
    if len(document) > limit:
        raise Failure(f"The search document has more than {limit} bytes (repository.max_metadata_bytes).", Exit.REFUSED)
    return document


def _query(data: DataFolder, question: _Question) -> tree.Query:
    options = data.settings.repository
    limits = tree.QueryLimits.of(options)
    if question.document is not None:
        read = as_json.read if _is_json(question.document) else as_xml.read
        return read(question.document, options.names, limits)
    text = typed.translate(question.words).text if question.typed else question.words.strip()
    query = tree.Query(condition=tree.Fulltext(keywords.read(text, limits)) if text else None)
    if not (question.typed and typed.has_fields(question.words)):
        return query
    with data.read("repository") as cx:
        repository = repositories.find(cx, question.repository_name)
        view = RepositoryView.read(cx, repository, initialise.administrator(data))
        return search_requests.with_fields(cx, view, options, query, question.words)


def _is_json(document: bytes) -> bool:
    return document.lstrip().startswith(b"{")


def _as_administrator(data: DataFolder, question: _Question) -> _Answer:
    asked = SearchQuestion(
        *(_query(data, question), 1, question.limit, True), words=question.words_needed, typed=question.typed
    )
    with explaining.asking(data, question.repository_name) as inquiry:
        page = results.search(inquiry.asking(asked))
        unseen = changes.after(inquiry.cx, inquiry.repository.id, page.position, 1)
    if unseen and data.now - unseen[0].noted > _LATE:
        terminal.errors.print(
            "The index has not moved for a while, so changes are missing from these results: is 'muniment serve' or "
            "'muniment agent' running? 'muniment index status' says how far it is."
        )
    hits = [_Hit(hit.object_id, hit.title, hit.score, hit.summary) for hit in page.hits]
    return _Answer(page.total or 0, hits, page.relaxed)


def _as_user(
    data: DataFolder, question: _Question, user: str, client: str, ca_file: Path | None, token: str
) -> _Answer:
    context, base = _tls_context(data, ca_file), data.server_address
    try:
        with httpx.Client(base_url=base, verify=context, timeout=60, trust_env=False) as http:
            bearer = token or _sign_in(data, http, question.repository_name, user, client)
            answer = _ask(data, http, question, bearer)
    except httpx.TransportError as error:
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            raise Failure(
                f"{base} shows a certificate that is not trusted here ({error}): "
                "name its CA's certificate with --ca-file.",
                Exit.REFUSED,
            ) from error
        raise Failure(f"{base} cannot be reached ({error}): is 'muniment serve' running?", Exit.NOT_READY) from error
    page = _json(answer)
    if answer.status_code != 200:
        raise Failure(
            f"The server answered {answer.status_code}: {page.get('message', answer.text[:500])}", Exit.REFUSED
        )
    hits = [_Hit(hit["id"], hit["title"], float(hit.get("score", 0)), hit["summary"]) for hit in page["entries"]]
    return _Answer(page["total"], hits, answer.headers.get(parameters.WORDS_NEEDED.name) == "any")


def _ask(data: DataFolder, http: httpx.Client, question: _Question, bearer: str) -> httpx.Response:
    prefix = data.settings.repository.names.prefix
    address = f"/{prefix}/repositories/{quote(question.repository_name, safe='')}/search"
    parameters = {"items-per-page": str(question.limit), "include-total": "true"}
    headers = {"Authorization": f"Bearer {bearer}", "Accept": "application/json"}
    if question.document is None:
        words = {"q": question.words, "words": question.words_needed, "typed": str(question.typed).lower()}
        return http.get(address, params={**words, **parameters}, headers=headers)
    headers["Content-Type"] = "application/json" if _is_json(question.document) else "application/xml"
    return http.post(address, params=parameters, headers=headers, content=question.document)


def _tls_context(data: DataFolder, ca_file: Path | None) -> ssl.SSLContext:
    own_ca = data.installation.tls / "ca.pem"
    try:
        context = ssl.create_default_context(cafile=ca_file)
        if ca_file is None and own_ca.exists():
            context.load_verify_locations(own_ca)
    except ssl.SSLError as error:
        raise Failure(
            f"{ca_file or own_ca} holds no certificate (PEM): name the CA's certificate with --ca-file."
        ) from error
    return context


def _sign_in(data: DataFolder, http: httpx.Client, repository_name: str, user: str, client: str) -> str:
    password = os.environ.get("MUNIMENT_PASSWORD", "")
    if not password:
        if not sys.stdin.isatty():
            raise Failure("No password: put it into the environment variable MUNIMENT_PASSWORD.", Exit.USAGE)
        password = getpass.getpass(f"Password of {user}: ")
    directory = data.settings.directory.names
    with data.read("repository") as cx:
        resource_id = repositories.find(cx, repository_name).resource_id
    with data.read("directory") as cx:
        scope = names.scope(resources.shown_name(directory, resources.by_id(cx, resource_id)))
    form = {"grant_type": "password", "client_id": client, "username": user, "password": password, "scope": scope}
    answer = http.post(f"/{directory.prefix}/login", data=form)
    document = _json(answer)
    if answer.status_code != 200 or "access_token" not in document:
        otherwise = f"the server answered {answer.status_code}: {answer.text[:300]}"
        raise Failure(f"Not signed in: {document.get('error_description', otherwise)}", Exit.REFUSED)
    return str(document["access_token"])


def _json(answer: httpx.Response) -> Mapping[str, Any]:
    try:
        document = answer.json()
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}

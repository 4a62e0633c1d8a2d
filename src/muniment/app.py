"""Both halves, or either one, as one ASGI application: the only room that knows both."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec
import structlog
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from muniment import certificates
from muniment.clock import Instant, now
from muniment.db import Database
from muniment.directory import identities, system
from muniment.directory.context import Directory
from muniment.directory.endpoints import routes as directory_routes
from muniment.directory.endpoints import spelling as directory_spelling
from muniment.directory.endpoints.oauth import TOKENINFO
from muniment.directory.oauth import tokeninfo
from muniment.directory.sign_in.passwords import PasswordGate
from muniment.events import Recorder
from muniment.front import pages
from muniment.front import routes as front_routes
from muniment.front.halves import Halves
from muniment.installation import Installation
from muniment.repository.callers import ATTRIBUTES, Ask, Attributes, Callers, refused
from muniment.repository.content.contract import ContentStore
from muniment.repository.content.files import FileStore
from muniment.repository.endpoints import routes as repository_routes
from muniment.repository.endpoints import spelling as repository_spelling
from muniment.repository.endpoints.context import RepositoryContext
from muniment.repository.index.contract import Engine, Index
from muniment.repository.index.tantivy.engine import TantivyIndex, TantivyWriter
from muniment.repository.index.tantivy.generations import FolderEngine
from muniment.repository.permissions.bearers import Identify
from muniment.repository.repositories import Repository
from muniment.schema import check_schema
from muniment.settings import Settings
from muniment.web.addresses import Addresses
from muniment.web.responses import ErrorCode
from muniment.web.transactions import Transactions
from muniment.web.transport import Transport
from muniment.web.witness import Witness, record_counts

log = structlog.get_logger("muniment.app")

_DAY_SECONDS = 86_400


def build(settings: Settings, data: Path, *, clock: Callable[[], Instant] = now) -> ASGIApp:
    """Build the application over a data folder whose databases are migrated.

    Its lifespan opens this process's databases, password gate and index readers, and closes them at the end. It raises
    SchemaMismatch when a database is not at this release's schema.
    """
    halves = Halves(Installation(data, settings), clock, reader)

    recorder = Recorder(halves.installation.events, halves.installation.counts)

    @asynccontextmanager
    async def lifespan(application: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as closing:
            _run_beside(record_counts(recorder, clock), closing)
            application.state.addresses = Witness(Addresses(await _open_halves(halves, closing)), recorder, clock)
            yield

    starlette = Starlette(lifespan=lifespan)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await starlette(scope, receive, send)
        else:
            await starlette.state.addresses(scope, receive, send)

    async def enforced() -> bool:
        # A repository without the directory cannot ask whether TLS is enforced, so it enforces TLS.
        return halves.directory is None or await halves.directory.transactions.read(system.enforce_ssl)

    return Transport(
        answer,
        settings.web,
        guarded=[f"/{settings.directory.names.prefix}"] if "directory" in settings.halves else [],
        enforced=enforced,
        shape=_shape(settings),
    )


def reader(installation: Installation, repository: Repository) -> Index:
    """Open a repository's index for reading; the reader follows to each new generation of it."""
    return engine(installation).index(repository.id).reader()


def engine(installation: Installation) -> Engine:
    """Return the engine that keeps the indexes of all repositories."""
    language = installation.settings.repository.language
    return FolderEngine(
        installation.indexes,
        lambda folder: TantivyWriter(folder, language),
        lambda folder: TantivyIndex(folder, language),
    )


def content(installation: Installation) -> ContentStore:
    """Open the store of all content."""
    return FileStore(installation.content)


def gate(installation: Installation) -> PasswordGate:
    """Open this process's gate, through which every password check passes."""
    options = installation.settings.directory
    return PasswordGate(
        installation.gate, options.hash_slots, options.hash_queue, options.hash_memory_kib, options.hash_passes
    )


async def _open_halves(halves: Halves, closing: AsyncExitStack) -> list[Route]:
    installation = halves.installation
    routes = front_routes.routes(halves)
    _run_beside(_watch_certificate(halves), closing)
    if "directory" in installation.settings.halves:
        halves.directory = _open_directory(halves, closing)
        routes += directory_routes.routes(halves.directory)
    if "repository" in installation.settings.halves:
        halves.repository = _open_repository(halves, closing)
        routes += repository_routes.routes(halves.repository)
    return [*routes, pages.unknown_addresses(halves, _shape(installation.settings))]


def _open_directory(halves: Halves, closing: AsyncExitStack) -> Directory:
    database = Database(halves.installation.database_url("directory"))
    transactions = Transactions(database, inline=True)
    closing.callback(transactions.close)
    check_schema(database, "directory")
    entrance = gate(halves.installation)
    closing.callback(entrance.close)
    return Directory(transactions, halves.installation.settings.directory, entrance, halves.clock)


def _open_repository(halves: Halves, closing: AsyncExitStack) -> RepositoryContext:
    installation = halves.installation
    options = installation.settings.repository
    database = Database(installation.database_url("repository"))
    transactions = Transactions(database, question_seconds=options.question_seconds)
    closing.callback(transactions.close)
    check_schema(database, "repository")
    closing.callback(halves.close_indexes)
    callers = _callers(halves)
    closing.push_async_callback(callers.close)
    return RepositoryContext(transactions, options, callers, content(installation), halves.index, halves.clock)


def _callers(halves: Halves) -> Callers:
    settings = halves.installation.settings
    names, options = settings.directory.names, settings.repository
    attributes = Attributes(*(names.attributes.get(name, name) for name in ATTRIBUTES))
    if options.tokeninfo_url or halves.directory is None:
        return Callers.over_http(
            options.tokeninfo_url, options.tokeninfo_ca_file, options.administrators, names.dn_suffix, attributes
        )
    transactions = halves.directory.transactions
    off_loop = None if transactions.database.dialect == "sqlite" else transactions.off_loop
    return Callers.in_process(
        in_process(halves.directory),
        options.administrators,
        names.dn_suffix,
        attributes,
        off_loop,
        bearing(transactions.database, settings),
    )


def bearing(directory: Database, settings: Settings) -> Identify:
    """Make the function that asks the directory's database who bears a name now."""

    def identify(ids: Collection[str]) -> Mapping[str, str]:
        with directory.read() as cx:
            return identities.of(cx, settings.directory.names, ids)

    return identify


def in_process(directory: Directory) -> Ask:
    """Make the function that asks the directory in this process for tokeninfo: the same document, without a socket."""

    def ask(token: str, resource_id: str) -> bytes:
        try:
            with directory.transactions.database.read() as cx:
                info = tokeninfo.verify(cx, directory.options, directory.memory, token, resource_id, directory.clock())
        except tuple(TOKENINFO) as refusal:
            raise refused(TOKENINFO[type(refusal)].status) from refusal
        return msgspec.json.encode(info)

    return ask


def _shape(settings: Settings) -> Callable[[Request, ErrorCode, str], Response]:
    directory_prefix, repository_prefix = settings.directory.names.prefix, settings.repository.names.prefix
    shapes = {}
    if "directory" in settings.halves:
        shapes[f"/{directory_prefix}/"] = directory_spelling.shape(settings.directory.names)
    if "repository" in settings.halves:
        shapes[f"/{repository_prefix}/"] = repository_spelling.error_shape(settings.repository.names)

    def write(request: Request, code: ErrorCode, sentence: str) -> Response:
        path = request.scope["path"] + "/"
        for prefix, shape in shapes.items():
            if path.startswith(prefix):
                return shape(request, code, sentence)
        return pages.plain(request, code, sentence)

    return write


async def _watch_certificate(halves: Halves) -> None:
    """Warn in the log, once a day, when the listener's certificate expires soon."""
    while True:
        days = certificates.days_left(halves.installation.certificate, halves.clock())
        if days is not None and days < certificates.RENEW_DAYS:
            is_own = not halves.installation.settings.web.certificate_file
            log.warning(
                "the certificate has expired" if days < 0 else "the certificate expires soon",
                days_left=days,
                file=str(halves.installation.certificate),
                to_do="restart the server: that renews it" if is_own else "renew it, then restart the server",
            )
        await asyncio.sleep(_DAY_SECONDS)


def _run_beside(work: Coroutine[None, None, None], closing: AsyncExitStack) -> None:
    closing.push_async_callback(_cancel, asyncio.create_task(work))


async def _cancel(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

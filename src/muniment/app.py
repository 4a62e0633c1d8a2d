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
from muniment.web.witness import Witness, tell_counts

log = structlog.get_logger("muniment.app")

_DAY_SECONDS = 86_400


def build(settings: Settings, data: Path, *, clock: Callable[[], Instant] = now) -> ASGIApp:
    """Build the application over a data folder whose databases are migrated.

    Its lifespan opens this process's databases, password gate and index readers, and closes them. Raises SchemaMismatch
    there when a database is not at this release's schema.
    """
    halves = Halves(Installation(data, settings), clock, reader)

    recorder = Recorder(halves.installation.events, halves.installation.counts)

    @asynccontextmanager
    async def lifespan(application: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as closing:
            _meanwhile(tell_counts(recorder, clock), closing)
            application.state.addresses = Witness(Addresses(await _open(halves, closing)), recorder, clock)
            yield

    opened = Starlette(lifespan=lifespan)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await opened(scope, receive, send)
        else:
            await opened.state.addresses(scope, receive, send)

    async def enforced() -> bool:
        # A repository without the directory beside it cannot ask whether TLS is enforced: then it is.
        return halves.directory is None or await halves.directory.transactions.read(system.enforce_ssl)

    return Transport(
        answer,
        settings.web,
        guarded=[f"/{settings.directory.names.prefix}"] if "directory" in settings.halves else [],
        enforced=enforced,
        shape=_shape(settings),
    )


def reader(installation: Installation, repository: Repository) -> Index:
    """Open a repository's index for reading, whichever generation of it is the current one."""
    return engine(installation).index(repository.id).reader()


def engine(installation: Installation) -> Engine:
    """Give what keeps the indexes of all repositories."""
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
    """Open this process's gate before password checks."""
    options = installation.settings.directory
    return PasswordGate(
        installation.gate, options.hash_slots, options.hash_queue, options.hash_memory_kib, options.hash_passes
    )


async def _open(halves: Halves, closing: AsyncExitStack) -> list[Route]:
    installation = halves.installation
    routes = front_routes.routes(halves)
    _meanwhile(_watch_certificate(halves), closing)
    if "directory" in installation.settings.halves:
        halves.directory = _open_directory(halves, closing)
        routes += directory_routes.routes(halves.directory)
    if "repository" in installation.settings.halves:
        halves.repository = _open_repository(halves, closing)
        routes += repository_routes.routes(halves.repository)
    return [*routes, pages.elsewhere(halves, _shape(installation.settings))]


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
    attributes = Attributes(*(names.attributes.get(ours, ours) for ours in ATTRIBUTES))
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
    """Make what asks the directory's database who bears a name now."""

    def identify(ids: Collection[str]) -> Mapping[str, str]:
        with directory.read() as cx:
            return identities.of(cx, settings.directory.names, ids)

    return identify


def in_process(directory: Directory) -> Ask:
    """Make tokeninfo of the directory in this process the way callers are known: no socket, the same document."""

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

    def write(request: Request, said: ErrorCode, sentence: str) -> Response:
        path = request.scope["path"] + "/"
        for prefix, shape in shapes.items():
            if path.startswith(prefix):
                return shape(request, said, sentence)
        return pages.plain(request, said, sentence)

    return write


async def _watch_certificate(halves: Halves) -> None:
    """Say in the log, once a day, that the listener's certificate ends soon."""
    while True:
        left = certificates.days_left(halves.installation.certificate, halves.clock())
        if left is not None and left < certificates.RENEW_DAYS:
            own = not halves.installation.settings.web.certificate_file
            log.warning(
                "the certificate is over" if left < 0 else "the certificate ends soon",
                days_left=left,
                file=str(halves.installation.certificate),
                to_do="start the server anew: that renews it" if own else "renew it, then start the server anew",
            )
        await asyncio.sleep(_DAY_SECONDS)


def _meanwhile(work: Coroutine[None, None, None], closing: AsyncExitStack) -> None:
    closing.push_async_callback(_ended, asyncio.create_task(work))


async def _ended(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

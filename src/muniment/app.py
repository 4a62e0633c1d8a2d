"""Build one ASGI application of both halves, or of one half."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import structlog
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from muniment.database.connections import Busy, Database
from muniment.database.schema import check_schema
from muniment.database.transactions import Transactions
from muniment.directory.administration import decisions
from muniment.directory.api import routes as directory_routes
from muniment.directory.api import spelling as directory_spelling
from muniment.directory.console import frame
from muniment.directory.context import Directory
from muniment.directory.entries import system
from muniment.directory.entries.names import user_id
from muniment.directory.sign_in.passwords import PasswordGate
from muniment.front import pages
from muniment.front import routes as front_routes
from muniment.front.halves import Halves
from muniment.ground import certificates
from muniment.ground.certificates import CertificateProblem
from muniment.ground.clock import Instant, now
from muniment.ground.events import Recorder
from muniment.installation import backends
from muniment.installation.layout import Installation
from muniment.installation.settings import Settings
from muniment.integration import directory_callers, guards
from muniment.integration.directory_dependencies import RepositoryDependencies
from muniment.integration.directory_people import DirectoryPeople
from muniment.integration.people_changes import DirectoryPeopleChanges
from muniment.integration.people_elsewhere import PeopleElsewhere
from muniment.integration.person_removal import Holdings
from muniment.repository.api import routes as repository_routes
from muniment.repository.api.callers import credentials
from muniment.repository.api.callers.callers import Callers
from muniment.repository.api.callers.tokeninfo import ATTRIBUTES, Attributes
from muniment.repository.api.context import RepositoryContext
from muniment.repository.api.wire import spelling as repository_spelling
from muniment.repository.api.wire.parameters import exposed_headers
from muniment.repository.options import TOKENINFO_ADDRESS
from muniment.repository.page import frame as search_page_frame
from muniment.repository.page import routes as search_page_routes
from muniment.repository.search.analysis.analysis import Analyser
from muniment.repository.search.answering.cache import SearchCache
from muniment.repository.search.aql.rewriting.synonyms import Synonyms
from muniment.repository.store.content.deferring import DeferringStore
from muniment.repository.store.people import People, PeopleChanges
from muniment.repository.store.permissions.principals import Principals
from muniment.web.addresses import Addresses
from muniment.web.answers.responses import ErrorCode, Shape
from muniment.web.fast_path import FastFront
from muniment.web.options import base_address
from muniment.web.requests.access_log import AccessLog
from muniment.web.requests.cors import Cors
from muniment.web.requests.transport import Transport
from muniment.web.requests.witness import Witness, record_counts

log = structlog.get_logger("muniment.app")

_DAY_SECONDS = 86_400


def build(
    settings: Settings, data: Path, *, clock: Callable[[], Instant] = now, access_log: AccessLog | None = None
) -> FastFront:
    """Without an ``access_log``, each request's line is written at once. The lifespan opens this process's databases
    and password gate, and at the end closes them and the index readers; it raises SchemaMismatch.
    """
    installation = Installation(data, settings)
    halves = Halves(installation, clock, backends.reader, tika=backends.tika(installation))

    recorder = Recorder(halves.installation.events, halves.installation.counts)
    access_log = access_log or AccessLog()
    witness: Witness | None = None

    @asynccontextmanager
    async def lifespan(_application: Starlette) -> AsyncIterator[None]:
        nonlocal witness
        async with AsyncExitStack() as stack:
            stack.callback(access_log.flush)
            _run_in_background(record_counts(recorder, clock), stack)
            witness = Witness(Addresses(await _open_halves(halves, stack)), recorder, clock)
            if halves.directory is not None:
                front.addresses, front.record = directory_routes.fast_paths(halves.directory), witness.record
            try:
                yield
            finally:
                witness, front.addresses = None, {}

    starlette = Starlette(lifespan=lifespan)

    def answer(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        # Before the lifespan has begun, the server sends no request, only the lifespan's own scope.
        return (starlette if witness is None else witness)(scope, receive, send)

    async def requires_tls() -> bool:
        # Without the directory, nobody can tell whether TLS is required. Then this server requires it.
        return halves.directory is None or await halves.directory.transactions.read(system.enforce_ssl)

    transport = Transport(
        answer,
        settings.web,
        sensitive_prefixes=_sensitive_prefixes(settings),
        requires_tls=requires_tls,
        shape=_shape(settings),
        credential_headers=[frame.ticket_header(settings.directory.names)],
        credential_parameters=credentials.parameters(settings.repository) if "repository" in settings.halves else (),
        access_log=access_log,
    )
    application: ASGIApp = transport
    repository = settings.repository
    if "repository" in settings.halves and repository.cors_origins:
        application = Cors(
            transport,
            f"/{repository.names.prefix}",
            repository.cors_origins,
            credentials=repository.cors_credentials,
            exposed_headers=exposed_headers(repository.names),
            seconds=repository.cors_seconds,
        )
    front = FastFront(transport, application)
    return front


def gate(installation: Installation) -> PasswordGate:
    options = installation.settings.directory
    return PasswordGate(
        installation.gate, options.hash_slots, options.hash_queue, options.hash_memory_kib, options.hash_passes
    )


async def _open_halves(halves: Halves, stack: AsyncExitStack) -> list[Route]:
    installation = halves.installation
    routes = front_routes.routes(halves)
    _run_in_background(_watch_certificate(halves), stack)
    if "directory" in installation.settings.halves:
        halves.directory = _open_directory(halves, stack)
        routes += directory_routes.routes(halves.directory)
    if "repository" in installation.settings.halves:
        halves.repository = _open_repository(halves, stack)
        routes += repository_routes.routes(halves.repository)
        routes += search_page_routes.routes(halves.repository)
    return [*routes, pages.unknown_addresses(halves, _shape(installation.settings))]


def _open_directory(halves: Halves, stack: AsyncExitStack) -> Directory:
    database = Database(halves.installation.database_url("directory"))
    transactions = Transactions(database, inline=True)
    stack.callback(transactions.close)
    check_schema(database, "directory")
    with database.read() as cx:
        system.remember_keys(cx)
    _run_in_background(_read_keys_again(transactions), stack)
    password_gate = gate(halves.installation)
    stack.callback(password_gate.close)
    settings = halves.installation.settings
    search_path = search_page_frame.PREFIX if _offers_search_page(settings) else ""
    base, names = base_address(settings.web), settings.directory.names
    repositories = f"{base}/{settings.repository.names.prefix}/repositories/"
    dependencies = RepositoryDependencies(
        database, names, halves.clock, lambda: _present_holdings(halves), repositories
    )
    return Directory(
        *(transactions, settings.directory, password_gate, halves.clock, dependencies),
        *(f"{base}/{names.prefix}", search_path),
    )


def _open_repository(halves: Halves, stack: AsyncExitStack) -> RepositoryContext:
    installation = halves.installation
    options = installation.settings.repository
    database = Database(installation.database_url("repository"))
    transactions = Transactions(
        database,
        question_seconds=options.question_seconds,
        hold_seconds=options.batch_hold_seconds,
        # A search of another server waits for its answers.
        searches_of_each=2 if options.index == "opensearch" else 1,
    )
    stack.callback(transactions.close)
    check_schema(database, "repository")
    stack.callback(halves.close_indexes)
    callers = _callers(halves)
    stack.push_async_callback(callers.close)
    directory_people: People | None = None
    people_changes: PeopleChanges | None = None
    if halves.directory is not None and not options.tokeninfo_url:
        directory_people = DirectoryPeople(halves.directory, options.question_seconds)
        people_changes = DirectoryPeopleChanges(halves.directory, _holdings(halves, halves.directory, database))
    elif callers.elsewhere is not None and options.resource_secrets_file:
        directory_people = PeopleElsewhere(callers.elsewhere.people, options.question_seconds)
    analyser = Analyser(options.language)
    synonyms = Synonyms(options.synonyms, lambda text: [stem for _, stem in analyser.stem(text)])
    return RepositoryContext(
        *(transactions, options, callers, DeferringStore(backends.content(installation))),
        *(halves.index, halves.clock, directory_people, people_changes),
        memory=SearchCache(
            synonyms, backends.meaning(installation), partial(repository_spelling.meant_text, options=options)
        ),
        issuer=_issuer(halves),
        root=urlsplit(base_address(installation.settings.web)).path,
    )


def _issuer(halves: Halves) -> str:
    """Of the directory that lets callers into the repositories."""
    settings = halves.installation.settings
    if halves.directory is not None and not settings.repository.tokeninfo_url:
        return halves.directory.issuer
    elsewhere = TOKENINFO_ADDRESS.fullmatch(settings.repository.tokeninfo_url)
    return "" if elsewhere is None else elsewhere[1]


def _present_holdings(halves: Halves) -> Holdings | None:
    if halves.directory is None or halves.repository is None or halves.repository.options.tokeninfo_url:
        return None
    return _holdings(halves, halves.directory, halves.repository.transactions.database)


def _holdings(halves: Halves, directory: Directory, database: Database) -> Holdings:
    names, options = directory.options.names, halves.installation.settings.repository
    identify = directory_callers.identification(directory.transactions.database, names)
    first = user_id(decisions.FIRST_ADMINISTRATOR, names.administration_partition)
    acting = Principals(first, administrator=True, identify=identify)
    client_settings = guards.read_client_settings(options)
    return Holdings(database, halves.index, identify, acting, options.max_pending_changes, client_settings)


def _callers(halves: Halves) -> Callers:
    settings = halves.installation.settings
    names, options = settings.directory.names, settings.repository
    if halves.directory is None or options.tokeninfo_url:
        return Callers.over_http(
            options.tokeninfo_url,
            options.tokeninfo_ca_file,
            options.administrators,
            names.dn_suffix,
            attributes(settings),
            options,
        )
    return directory_callers.callers(halves.directory, options, attributes(settings))


def attributes(settings: Settings) -> Attributes:
    names = settings.directory.names
    return Attributes(*(names.attributes.get(name, name) for name in ATTRIBUTES))


def _sensitive_prefixes(settings: Settings) -> list[str]:
    prefixes = directory_spelling.prefixes(settings.directory) if "directory" in settings.halves else []
    return [*prefixes, search_page_frame.PREFIX] if _offers_search_page(settings) else prefixes


def _offers_search_page(settings: Settings) -> bool:
    return "repository" in settings.halves and settings.repository.offers_search_page


def _shape(settings: Settings) -> Callable[[Request, ErrorCode, str], Response]:
    repository_prefix = settings.repository.names.prefix
    shapes: dict[str, Shape] = {}
    if "directory" in settings.halves:
        shape = directory_spelling.shape(settings.directory)
        shapes |= {f"{prefix}/": shape for prefix in directory_spelling.prefixes(settings.directory)}
    if "repository" in settings.halves:
        shapes[f"/{repository_prefix}/"] = repository_spelling.error_shape(settings.repository.names)

    def write(request: Request, code: ErrorCode, sentence: str) -> Response:
        path = request.scope["path"] + "/"
        for prefix, shape in shapes.items():
            if path.startswith(prefix):
                return shape(request, code, sentence)
        return pages.plain(request, code, sentence)

    return write


async def _read_keys_again(transactions: Transactions) -> None:
    while True:
        await asyncio.sleep(system.READ_AGAIN_SECONDS)
        try:
            await transactions.read(system.remember_keys)
        except Busy:
            log.info("the keys are read again later")


async def _watch_certificate(halves: Halves) -> None:
    installation = halves.installation
    is_local = not installation.settings.web.certificate_file
    while True:
        now = halves.clock()
        if is_local and (certificates.days_left(installation.tls / "ca.pem", now) or 0) >= certificates.RENEW_DAYS:
            await asyncio.to_thread(_renew_certificate, installation, now)
        days = certificates.days_left(installation.certificate, now)
        if days is not None and days < certificates.RENEW_DAYS:
            log.warning(
                "the certificate has expired" if days < 0 else "the certificate expires soon",
                days_left=days,
                file=str(installation.certificate),
                to_do="restart the server, and give its callers the new CA's certificate"
                if is_local
                else "renew it: the server takes the new one within seconds",
            )
        await asyncio.sleep(_DAY_SECONDS)


def _renew_certificate(installation: Installation, now: Instant) -> None:
    try:
        certificates.ensure(installation.tls, installation.certificate_names, now)
    except (OSError, CertificateProblem) as error:
        log.error("the certificate cannot be renewed", reason=str(error))  # noqa: TRY400 - no bug


def _run_in_background(work: Coroutine[None, None, None], stack: AsyncExitStack) -> None:
    stack.push_async_callback(_cancel, asyncio.create_task(work))


async def _cancel(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

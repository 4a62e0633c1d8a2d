"""Serve a data folder: migrate the databases, bind the sockets, then start all processes."""

import errno
import os
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import structlog

from muniment import app
from muniment.database.audit import SYSTEM, acting, unnamed
from muniment.database.connections import Database, Half
from muniment.ground import certificates, clock
from muniment.installation import backends, initialise
from muniment.installation.data_folder import DataFolder
from muniment.installation.exit_codes import Exit, Failure
from muniment.installation.layout import Installation
from muniment.repository.refusals import IndexUnavailable
from muniment.repository.search.agent import agent
from muniment.repository.search.meaning import embedder, model, process
from muniment.repository.store.change_log.followers import Retention
from muniment.repository.store.extraction import extractor as extraction
from muniment.repository.store.objects import found_properties
from muniment.server import listener, logs, memory, purge
from muniment.server.acceptor import Crowd
from muniment.server.listener import Listeners
from muniment.server.supervisor import Role, supervise

log = structlog.get_logger("muniment.serve")


def run(data: DataFolder, *, with_agent: bool = True, also: Sequence[Role] = ()) -> int:
    """Raises Failure, for example when another process uses the folder or a port is busy."""
    installation = data.installation
    data.make_folder()
    logs.start(data.settings)
    with data.lock():
        data.migrate()
        _check_model(installation)
        _check_languages(installation)
        if new_client := initialise.ensure_search_client(data):
            log.info("made the missing client of the search page", client=new_client)
        initialise.ensure_signing_keys(data)
        listeners = _listeners(installation, data)
        data.announce(installation.base)
        web = installation.settings.web
        roles = [Role(f"worker {at + 1}", partial(_work, installation, listeners, at)) for at in range(web.workers)]
        if with_agent and "repository" in installation.settings.halves:
            roles += agents(installation)
        roles.append(_role("purge", installation, purge.run, installation.settings.halves[0], niceness=10))

        ready = partial(log.info, "ready", address=installation.base, workers=web.workers)
        return supervise([*roles, *also], web.stop_seconds, ready)


def check_ports(data: DataFolder) -> None:
    """Raise Failure when a port cannot be bound. Call it before making any file."""
    web = data.settings.web
    _bind(web.host, web.port, "web.port", "--port").close()
    if web.http_port:
        _bind(web.host, web.http_port, "web.http_port", "--set web.http_port=").close()


def agents(installation: Installation) -> list[Role]:
    """Raises Failure if the embedder's model is missing."""
    roles = [_role("agent", installation, _index), _role("extraction", installation, _extract, niceness=5)]
    return [*roles, _role("meaning", installation, _embed, niceness=5)] if _check_model(installation) else roles


def _role(
    name: str,
    installation: Installation,
    work: Callable[[Installation, Database, threading.Event, Callable[[], None]], None],
    half: Half = "repository",
    niceness: int = 0,
) -> Role:
    def run(stop: threading.Event, ready: Callable[[], None]) -> None:
        memory.start_trimming()
        os.nice(niceness)
        with closing(Database(installation.database_url(half))) as database, acting(SYSTEM, clock.now):
            work(installation, database, stop, ready)

    return Role(name, run)


def _index(installation: Installation, database: Database, stop: threading.Event, ready: Callable[[], None]) -> None:
    options = installation.settings.repository
    agent.run(
        database,
        backends.engine(installation),
        stop,
        clock.now,
        backends.content(installation, makes_room=True),
        Retention(options.change_log_seconds, options.change_log_lines),
        options.index_check_seconds,
        ready,
    )


def _extract(installation: Installation, database: Database, stop: threading.Event, ready: Callable[[], None]) -> None:
    ready()
    store, options = backends.content(installation), installation.settings.repository
    extraction.run(database, store, options, stop, found_properties.keep_found_properties)


def _embed(installation: Installation, database: Database, stop: threading.Event, ready: Callable[[], None]) -> None:
    ready()
    with closing(process.EmbeddingProcess(model.ready(installation.models))) as embedding:
        embedder.run(database, embedding, stop, clock.now)


def _check_model(installation: Installation) -> bool:
    """Raises Failure if the model is missing."""
    if "repository" not in installation.settings.halves or not installation.settings.repository.meaning:
        return False
    try:
        model.ready(installation.models)
    except model.ModelMissing as error:
        raise Failure(str(error), Exit.REFUSED) from error
    return True


def _check_languages(installation: Installation) -> None:
    if "repository" in installation.settings.halves:
        try:
            backends.check_languages(installation)
        except IndexUnavailable as error:
            raise Failure(str(error), Exit.USAGE) from error


def _work(
    installation: Installation, listeners: Listeners, number: int, stop: threading.Event, ready: Callable[[], None]
) -> None:
    memory.start_trimming()
    access_log = logs.access_log(installation.settings)
    application = app.build(installation.settings, installation.data, access_log=access_log)
    unnamed(listener.serve, application, listeners, installation.settings.web, stop, ready, application, number)


def _listeners(installation: Installation, data: DataFolder) -> Listeners:
    web = installation.settings.web
    if web.certificate_file:
        cert_file, key_file = web.certificate_file, web.key_file
        for key, file in (("web.certificate_file", cert_file), ("web.key_file", key_file)):
            if not os.access(file, os.R_OK):
                raise Failure(
                    f"{key}: {file} cannot be read. Name a readable PEM file, or leave both settings empty.",
                    Exit.REFUSED,
                )
        tls = listener.renewable_tls(Path(cert_file), Path(key_file))
    else:
        certificate = certificates.ensure(installation.tls, installation.certificate_names, data.now)
        tls = listener.renewable_tls(certificate.cert_file, certificate.key_file)
    https = _bind(web.host, web.port, "web.port", "--port")
    http = _bind(web.host, web.http_port, "web.http_port", "--set web.http_port=") if web.http_port else None
    return Listeners(https, http, tls, Crowd(web.workers))


def _bind(host: str, port: int, key: str, option: str) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except socket.gaierror:
        raise _no_address(host) from None
    listener_socket = socket.socket(family, socket.SOCK_STREAM)
    listener_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        listener_socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if host == "::" else 1)
    try:
        listener_socket.bind(address)
        listener_socket.listen(2048)
    except OSError as error:
        listener_socket.close()
        if error.errno == errno.EADDRNOTAVAIL:
            raise _no_address(host) from error
        raise Failure(
            f"Port {port} on {host} cannot be used ({(error.strerror or '').lower()}): "
            f"choose another with {option} (setting {key}), or stop what listens there.",
            Exit.IN_USE,
        ) from error
    listener_socket.setblocking(False)
    return listener_socket


def _no_address(host: str) -> Failure:
    return Failure(f"web.host: {host!r} is no address of this machine. Name another with --host.", Exit.REFUSED)

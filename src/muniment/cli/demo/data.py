"""The demo: people, a client, a repository of real documents, and a file with the values that a script needs."""

import base64
import hmac
import ipaddress
import json
import os
import re
import secrets
import sys
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from sqlalchemy.engine import Connection

from muniment.cli import terminal
from muniment.cli.demo import tour
from muniment.cli.repository.importing import until_searchable
from muniment.database.connections import Database
from muniment.directory.administration.decisions import FIRST_ADMINISTRATOR
from muniment.directory.entries import credentials, editing, entries, memberships, names, resources, table
from muniment.directory.refusals import UnknownEntry, UnknownPartition
from muniment.directory.sign_in.passwords import hash_new
from muniment.ground import clock, disk
from muniment.installation import backends, initialise
from muniment.installation.data_folder import DataFolder
from muniment.installation.exit_codes import Exit, Failure
from muniment.repository.bulk.importing.mirror import Import
from muniment.repository.bulk.importing.report import ImportReport
from muniment.repository.refusals import UnknownAcl
from muniment.repository.store import repositories
from muniment.repository.store.extraction import queue
from muniment.repository.store.objects.decisions import creation
from muniment.repository.store.objects.folders import paths
from muniment.repository.store.objects.listing.view import RepositoryView
from muniment.repository.store.objects.types import types_file
from muniment.repository.store.permissions import acls
from muniment.repository.store.permissions.principals import Permission, Principals
from muniment.server import serve
from muniment.server.supervisor import Role

PARTITION = "people"
CLIENT = "demo-client"
PEOPLE = ("demo", "reader", "outsider")
_AT_HOME = ("demo", "reader")

_BUILT_IN_TYPES = ("document", "sysobject", "folder", "cabinet")
_FILES = 500
_BYTES = 100_000_000
_MACHINE = Path("/usr/share/doc")
_PLAIN = re.compile(r"(copyright|changelog.*|NEWS.*|buildinfo.*)$", re.IGNORECASE)
_WORD = re.compile(r"(?<!\w)[a-z]{5,14}(?!\w)")
_COMMON = frozenset(
    re.findall(
        r"[a-z]+",
        """about after again before being below could every first given having might other shall should since their
        there these thing things this those under until using which while whose would where within""",
    )
)
_TYPES = b"""
[types.article]
parent = "document"
properties = { pages = "integer", published = "date", topics = { kind = "string", repeating = true } }
"""


def demo_command(
    data: DataFolder,
    port: Annotated[int | None, typer.Option(help="Port of the HTTPS listener.")] = None,
    docs: Annotated[Path | None, typer.Option(help="The folder of documents to import.")] = None,
    project: Annotated[
        Path | None, typer.Option(help="A folder of documents to import when --docs is not given.")
    ] = None,
) -> int:
    """Set up demo data, serve it, and print the demo's tour as curl commands."""
    data.override("web.port", port)
    if docs is not None and not docs.is_dir():
        raise Failure(f"DOCS: {docs} is no folder.", Exit.USAGE)
    _check_loopback(data)
    folders = [docs] if docs else [folder for folder in (project, _MACHINE) if folder is not None and folder.is_dir()]
    if not any(files for folder in folders for _, _, files in os.walk(folder)):
        where = f"{docs} holds no file" if docs else "There is no document on this machine to import"
        raise Failure(f"{where}: name a folder of documents with DOCS=.", Exit.USAGE)
    serve.check_ports(data)
    if data.settings.log_level == "info":
        # People who try the demo want to see the tour, not a line for each request.
        data.override("log_level", "warning")
    values = data.path / "demo.json"
    passwords = _passwords(data)
    with data.lock():  # raises while a server runs, so that the server's file stays
        values.unlink(missing_ok=True)
    terminal.line(f"Starting on {data.installation.base} with the data folder {data.path} (Ctrl-C stops it).")
    data.override("repository.basic_client", initialise.BASIC_CLIENT)
    data.override("repository.default_partition", PARTITION)
    initialise.run(data, passwords["admin"])
    resource_id = _populate(data, passwords)

    def work(stop: threading.Event, ready: Callable[[], None]) -> None:
        ready()
        if values.exists():  # an earlier process of this role had finished, and was killed
            stop.wait()
            return
        try:
            _fill(data, folders, passwords, resource_id, values, bounded=docs is None)
        except Failure as failure:
            terminal.errors.print(terminal.harmless(f"muniment: {failure.sentence}"))
            sys.exit(failure.code)
        stop.wait()

    return serve.run(data, also=[Role("demo", work, vital=True)])


def _check_loopback(data: DataFolder) -> None:
    host = data.settings.web.host
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise Failure(
            f"Demo data is served on a loopback address only, not on {host}: "
            "for other addresses use 'muniment init' and 'muniment serve'.",
            Exit.REFUSED,
        )


def _passwords(data: DataFolder) -> dict[str, str]:
    """From a random seed in the data folder: each run makes the same ones.

    Raises Failure if the data folder was not made for the demo.
    """
    seed_file = data.path / "demo.seed"
    if not seed_file.exists():
        if data.path.exists() and any(data.path.glob("*.db")):
            raise Failure(
                f"{data.path} was not made for the demo, which does not mix with real data: name another with DATA=.",
                Exit.REFUSED,
            )
        data.make_folder()
        disk.replace(seed_file, secrets.token_bytes(32))
    seed = seed_file.read_bytes()

    def password(name: str) -> str:
        return base64.urlsafe_b64encode(hmac.digest(seed, name.encode(), "sha256")[:12]).decode()

    return {name: password(name) for name in (*PEOPLE, "admin")}


def _populate(data: DataFolder, passwords: Mapping[str, str]) -> str:
    directory_names = data.settings.directory.names
    with data.database("directory") as database:
        with database.read() as cx:
            missing = [name for name in PEOPLE if _user(cx, data, name) is None]
        hashes = {name: hash_new(passwords[name], data.settings.directory) for name in missing}
        with database.begin() as cx:
            resource = resources.find(cx, directory_names, initialise.resource_name(initialise.REPOSITORY))
            try:
                partition = entries.find_partition(cx, directory_names, PARTITION)
            except UnknownPartition:
                partition = editing.add_partition(
                    cx, directory_names, PARTITION, data.now, description="The demo's people."
                )
                staff = editing.add_group(cx, partition, "staff", data.now, description="Everybody who works here.")
                readers = editing.add_group(cx, partition, "readers", data.now, description="Those who only read.")
                memberships.add_member(cx, staff, readers)
                resources.add_to_role(cx, resource, staff)
                editing.add_client(cx, CLIENT, data.now, description="The demo's client.")
            for client, description in initialise.CLIENTS.items():
                if credentials.find_of_client(cx, client) is None:  # a folder of an earlier release
                    editing.add_client(cx, client, data.now, description=description)
            for name in missing:
                user = editing.add_user(cx, partition, name, data.now, password_hash=hashes[name])
                group = {"demo": "staff", "reader": "readers"}.get(name)
                if group:
                    memberships.add_member(cx, entries.find_group(cx, directory_names, f"{group}@{PARTITION}"), user)
    owner, at_home = _owner(data), {name: data.acting_as(names.user_id(name, PARTITION)) for name in _AT_HOME}
    with data.begin("repository") as cx:
        repository = repositories.find(cx, initialise.REPOSITORY)
        types_file.load(cx, repository.id, _TYPES, data.now)
        for_staff = {"owner": Permission.DELETE, f"staff@{PARTITION}": Permission.READ}
        _acl(cx, data, repository, owner, "staff", for_staff)
        _acl(cx, data, repository, owner, "closed", {"owner": Permission.DELETE})
        _acl(cx, data, repository, owner, "temp", {"owner": Permission.DELETE, f"staff@{PARTITION}": Permission.WRITE})
        _cabinet(cx, data, repository, owner, {"object_name": "Temp", "acl_name": "temp"})
        for name, principals in at_home.items():
            _cabinet(cx, data, repository, principals, {"object_name": name})
    return resource.id


def _user(cx: Connection, data: DataFolder, name: str) -> table.Entry | None:
    try:
        return entries.find_user(cx, data.settings.directory.names, f"{name}@{PARTITION}")
    except (UnknownEntry, UnknownPartition):
        return None


def _acl(
    cx: Connection,
    data: DataFolder,
    repository: repositories.Repository,
    owner: Principals,
    name: str,
    permissions: Mapping[str, Permission],
) -> None:
    try:
        acls.find(cx, repository.id, name, owner)
    except UnknownAcl:
        acls.add(cx, repository.id, name, owner, permissions, data.now)


def _cabinet(
    cx: Connection,
    data: DataFolder,
    repository: repositories.Repository,
    owner: Principals,
    properties: Mapping[str, str],
) -> None:
    """Make a cabinet, as installations of the field have them: one for what is passing, and the homes of users."""
    view = RepositoryView.read(cx, repository, owner)
    if not paths.folders_at(cx, view, [properties["object_name"]], 1):
        creation.create(cx, view, "cabinet", properties, None, None, data.now)


def _owner(data: DataFolder) -> Principals:
    return data.acting_as(names.user_id("demo", PARTITION))


def _fill(
    data: DataFolder,
    folders: list[Path],
    passwords: Mapping[str, str],
    resource_id: str,
    values: Path,
    *,
    bounded: bool,
) -> None:
    with data.database("repository") as database:
        with database.read() as cx:
            repository = repositories.find(cx, initialise.REPOSITORY)
        object_ids: list[str] = []
        for folder in folders:
            object_ids += _import(data, database, repository, folder, bounded=bounded).object_ids
        if not object_ids:
            raise Failure("No document was found to import: name a folder with DOCS=.")
        with terminal.Counting("Making searchable", None) as bar:
            if not until_searchable(data, database, repository, bar.reach):
                raise Failure("The documents could not be made searchable; the log says why.")
        word = _frequent_word(database, object_ids)
    facts = _facts(data, passwords, resource_id, word)
    tour.check_answers(facts)
    disk.replace(values, json.dumps(facts, indent=2).encode() + b"\n")
    terminal.line()
    terminal.line(tour.as_curl(facts))
    terminal.line(f"These values are in {values}.")
    terminal.line(tour.next_steps(data.path, facts))


def _import(
    data: DataFolder, database: Database, repository: repositories.Repository, folder: Path, *, bounded: bool
) -> ImportReport:
    machine = folder == _MACHINE

    def acl_for(path: str) -> str | None:
        # One document in ten is for its owner alone; every run chooses the same ones.
        return "closed" if zlib.crc32(os.fsencode(path)) % 10 == 0 else None

    work = Import(
        database,
        repository,
        backends.content(data.installation),
        backends.reader(data.installation, repository),
        data.settings.repository,
        clock.now,
        data.installation.imports,
        folder,
        principals=_owner(data),
        cabinet="machine" if machine else "",
        acl="staff",
        acl_for=acl_for,
        accept=(lambda path: _PLAIN.match(os.path.basename(path)) is None) if machine else (lambda _path: True),
        limit=_FILES if bounded else None,
        limit_bytes=_BYTES if bounded else None,
    )
    with terminal.Counting(f"Importing {folder}", None) as bar:
        report = work.run(4, bar.advance)
    terminal.line(
        f"{folder}: {report.created} imported, {report.replaced} replaced, {report.unchanged} unchanged, "
        f"{len(report.failed)} failed, {report.links} links not followed"
    )
    return report


def _frequent_word(database: Database, object_ids: list[str]) -> str:
    """Choose a word of 5 to 14 letters, in at least 90 percent as many of the first 400 documents as the most frequent
    one.

    Raises Failure without such a word.
    """
    documents: Counter[str] = Counter()
    with database.read() as cx:
        for content in queue.text_of(cx, object_ids[:400]).values():
            documents.update(set(_WORD.findall(content[:200_000].lower())) - _COMMON)
    if not documents:
        raise Failure("None of the documents holds text: name another folder with DOCS=.")
    highest = documents.most_common(1)[0][1]
    return min(word for word, count in documents.items() if count >= highest * 0.9)


def _facts(data: DataFolder, passwords: Mapping[str, str], resource_id: str, word: str) -> dict[str, object]:
    settings = data.settings
    directory, repository = settings.directory.names, settings.repository.names
    people = {name: {"username": names.user_id(name, PARTITION), "password": passwords[name]} for name in PEOPLE}
    administrator = names.user_id(FIRST_ADMINISTRATOR, directory.administration_partition)
    return {
        "base_url": data.installation.base,
        "ca_file": settings.web.certificate_file or str(data.installation.tls / "ca.pem"),
        "repository": initialise.REPOSITORY,
        "client_id": CLIENT,
        **people["demo"],
        "reader": people["reader"],
        "outsider": people["outsider"],
        "admin": {"username": administrator, "password": passwords["admin"]},
        "resource": {"name": initialise.resource_name(initialise.REPOSITORY), "id": resource_id},
        "word": word,
        "names": {
            "vocab_namespace": repository.vocab_namespace,
            "relevance_namespace": repository.relevance_namespace,
            "linkrel_base": repository.linkrel_base,
            **{f"{name}_type": repository.type_prefix + name for name in _BUILT_IN_TYPES},
            "directory": msgspec.to_builtins(directory),
            "repository": msgspec.to_builtins(repository),
        },
    }

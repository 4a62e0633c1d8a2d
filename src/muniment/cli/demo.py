"""The demo: people, a client, a repository full of real documents, and a file of the values that a script needs."""

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

from muniment import disk
from muniment.cli import initial, said, serve, walk
from muniment.cli.import_folder import until_searchable
from muniment.cli.importing import Import, Report
from muniment.cli.opened import Opened
from muniment.cli.outcome import Exit, Failure
from muniment.cli.supervisor import Role
from muniment.db import Database
from muniment.directory import entries, memberships, names, resources
from muniment.directory.entries import Entry
from muniment.directory.refusals import UnknownEntry, UnknownPartition
from muniment.repository import acls, object_types, repositories, text
from muniment.repository.principals import Permission, Principals
from muniment.repository.refusals import UnknownAcl
from muniment.repository.repositories import Repository

PARTITION = "people"
CLIENT = "demo-client"
PEOPLE = ("demo", "reader", "outsider")

_BUILT_IN_TYPES = ("document", "sysobject", "folder", "cabinet")
_FILES = 500
_BYTES = 100_000_000
_MACHINE = Path("/usr/share/doc")
_PLAIN = re.compile(r"(copyright|changelog.*|NEWS.*|buildinfo.*)$", re.IGNORECASE)
_WORD = re.compile(r"[a-z]{5,14}")
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
    context: typer.Context,
    port: Annotated[int | None, typer.Option(help="Port of the HTTPS listener.")] = None,
    docs: Annotated[Path | None, typer.Option(help="The folder of documents to import.")] = None,
    project: Annotated[
        Path | None, typer.Option(help="A folder of documents to import when --docs is not given.")
    ] = None,
) -> int:
    """Set up demo data, serve it, and print the walk with curl."""
    opened: Opened = context.obj
    opened.override("web.port", port)
    if docs is not None and not docs.is_dir():
        raise Failure(f"DOCS: {docs} is no folder.", Exit.USAGE)
    _check_loopback(opened)
    folders = [docs] if docs else [folder for folder in (project, _MACHINE) if folder is not None and folder.is_dir()]
    if not any(_holds_a_file(folder) for folder in folders):
        where = f"{docs} holds no file" if docs else "There is no document on this machine to import"
        raise Failure(f"{where}: name a folder of documents with DOCS=.", Exit.USAGE)
    serve.check_ports(opened)
    if opened.settings.log_level == "info":
        # Whoever tries the demo wants to see the walk, not a line for each request.
        opened.override("log_level", "warning")
    values = opened.data / "demo.json"
    passwords = _passwords(opened)
    with opened.held():  # the file of a server that is running stays
        values.unlink(missing_ok=True)
    said.line(f"Starting on {opened.installation.base} with the data folder {opened.data} (Ctrl-C stops it).")
    initial.begin(opened, passwords["admin"])
    resource_id = _populate(opened, passwords)

    def work(stop: threading.Event, ready: Callable[[], None]) -> None:
        ready()
        if values.exists():  # the process before this one was done, and then killed
            stop.wait()
            return
        try:
            _fill(opened, folders, passwords, resource_id, values, bounded=docs is None)
        except Failure as failure:
            said.errors.print(f"muniment: {failure.sentence}", markup=False)
            sys.exit(failure.code)
        stop.wait()

    return serve.run(opened, also=[Role("demo", work, vital=True)])


def _holds_a_file(folder: Path) -> bool:
    return any(files for _, _, files in os.walk(folder))


def _check_loopback(opened: Opened) -> None:
    host = opened.settings.web.host
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


def _passwords(opened: Opened) -> dict[str, str]:
    """Make the demo's passwords from a random seed of this data folder: the same on a rerun, and stored nowhere."""
    seed_file = opened.data / "demo.seed"
    if not seed_file.exists():
        if opened.data.exists() and any(opened.data.glob("*.db")):
            raise Failure(
                f"{opened.data} was not made for the demo, and real data stays apart from it: name another with DATA=.",
                Exit.REFUSED,
            )
        opened.make_folder()
        disk.replace(seed_file, secrets.token_bytes(32))
    seed = seed_file.read_bytes()

    def password(name: str) -> str:
        return base64.urlsafe_b64encode(hmac.digest(seed, name.encode(), "sha256")[:12]).decode()

    return {name: password(name) for name in (*PEOPLE, "admin")}


def _populate(opened: Opened, passwords: Mapping[str, str]) -> str:
    """Make the demo's people, client, types and ACLs where they are not there yet; give the guarding resource's id."""
    named = opened.settings.directory.names
    hashes: dict[str, str] = {}
    with opened.database("directory") as database:
        with database.read() as cx:
            missing = [name for name in PEOPLE if _user(cx, opened, name) is None]
        for name in missing:
            hashes[name] = initial.hashed(opened, passwords[name])
        with database.begin() as cx:
            resource = resources.named(cx, named, initial.resource_name(initial.REPOSITORY))
            try:
                partition = entries.find_partition(cx, named, PARTITION)
            except UnknownPartition:
                partition = entries.add_partition(cx, named, PARTITION, opened.now, description="The demo's people.")
                staff = entries.add_group(cx, partition, "staff", opened.now, description="Everybody who works here.")
                readers = entries.add_group(cx, partition, "readers", opened.now, description="Those who only read.")
                memberships.add_member(cx, staff, readers)
                resources.add_to_role(cx, resource, staff)
                entries.add_client(cx, CLIENT, opened.now, description="The demo's client.")
            for name in missing:
                user = entries.add_user(cx, partition, name, opened.now, password_hash=hashes[name])
                group = {"demo": "staff", "reader": "readers"}.get(name)
                if group:
                    memberships.add_member(cx, entries.find_group(cx, named, f"{group}@{PARTITION}"), user)
    owner = _owner(opened)
    with opened.database("repository") as database, database.begin() as cx:
        repository = repositories.named(cx, initial.REPOSITORY)
        object_types.load_types_file(cx, repository.id, _TYPES, opened.now)
        for_staff = {"owner": Permission.DELETE, f"staff@{PARTITION}": Permission.READ}
        _acl(cx, opened, repository, owner, "staff", for_staff)
        _acl(cx, opened, repository, owner, "closed", {"owner": Permission.DELETE})
    return resource.id


def _user(cx: Connection, opened: Opened, name: str) -> Entry | None:
    try:
        return entries.find_user(cx, opened.settings.directory.names, f"{name}@{PARTITION}")
    except (UnknownEntry, UnknownPartition):
        return None


def _acl(
    cx: Connection,
    opened: Opened,
    repository: Repository,
    owner: Principals,
    name: str,
    said_: Mapping[str, Permission],
) -> None:
    try:
        acls.named(cx, repository.id, name, owner)
    except UnknownAcl:
        acls.add(cx, repository.id, name, owner, said_, opened.now)


def _owner(opened: Opened) -> Principals:
    return opened.acting_as(names.user_id("demo", PARTITION))


def _fill(
    opened: Opened,
    folders: list[Path],
    passwords: Mapping[str, str],
    resource_id: str,
    values: Path,
    *,
    bounded: bool,
) -> None:
    with opened.database("repository") as database:
        with database.read() as cx:
            repository = repositories.named(cx, initial.REPOSITORY)
        kept: list[str] = []
        for folder in folders:
            kept += _import(opened, database, repository, folder, bounded=bounded).kept
        if not kept:
            raise Failure("No document was found to import: name a folder with DOCS=.")
        with said.counting("Making searchable", None) as bar:
            if not until_searchable(opened, database, repository, bar.reach):
                raise Failure("The documents could not be made searchable; the log says why.")
        word = _frequent_word(database, kept)
    facts = _facts(opened, passwords, resource_id, word)
    walk.check_answers(facts)
    disk.replace(values, json.dumps(facts, indent=2).encode() + b"\n")
    said.line()
    said.line(walk.as_curl(facts))
    said.line(f"These values are in {values}.")
    said.line(walk.next_steps(opened.data, facts))


def _import(opened: Opened, database: Database, repository: Repository, folder: Path, *, bounded: bool) -> Report:
    machine = folder == _MACHINE

    def acl_for(path: str) -> str | None:
        # One document in ten is for its owner alone, always the same ones.
        return "closed" if zlib.crc32(os.fsencode(path)) % 10 == 0 else None

    work = Import(
        opened,
        database,
        repository,
        folder,
        principals=_owner(opened),
        cabinet="machine" if machine else "",
        acl="staff",
        acl_for=acl_for,
        accept=(lambda path: _PLAIN.match(os.path.basename(path)) is None) if machine else (lambda _path: True),
        limit=_FILES if bounded else None,
        limit_bytes=_BYTES if bounded else None,
    )
    with said.counting(f"Importing {folder}", None) as bar:
        report = work.run(4, bar.advance)
    said.line(
        f"{folder}: {report.made} imported, {report.replaced} replaced, {report.unchanged} unchanged, "
        f"{len(report.failed)} failed, {report.links} links not followed"
    )
    return report


def _frequent_word(database: Database, object_ids: list[str]) -> str:
    """Choose a word that stands in as many documents as any."""
    documents: Counter[str] = Counter()
    with database.read() as cx:
        for content in text.text_of(cx, object_ids[:400]).values():
            documents.update(set(_WORD.findall(content[:200_000].lower())) - _COMMON)
    if not documents:
        raise Failure("None of the documents holds text: name another folder with DOCS=.")
    most = documents.most_common(1)[0][1]
    return min(word for word, count in documents.items() if count >= most * 0.9)


def _facts(opened: Opened, passwords: Mapping[str, str], resource_id: str, word: str) -> dict[str, object]:
    settings = opened.settings
    directory, repository = settings.directory.names, settings.repository.names
    people = {name: {"username": names.user_id(name, PARTITION), "password": passwords[name]} for name in PEOPLE}
    administrator = names.user_id(initial.ADMINISTRATOR, directory.administration_partition)
    return {
        "base_url": opened.installation.base,
        "ca_file": settings.web.certificate_file or str(opened.installation.tls / "ca.pem"),
        "repository": initial.REPOSITORY,
        "client_id": CLIENT,
        **people["demo"],
        "reader": people["reader"],
        "outsider": people["outsider"],
        "admin": {"username": administrator, "password": passwords["admin"]},
        "resource": {"name": initial.resource_name(initial.REPOSITORY), "id": resource_id},
        "word": word,
        "names": {
            "vocab_namespace": repository.vocab_namespace,
            "relevance_namespace": repository.relevance_namespace,
            "linkrel_base": repository.linkrel_base,
            **{
                f"{name}_type": repository.type_prefix + name for name in ("document", "sysobject", "folder", "cabinet")
            },
            "directory": msgspec.to_builtins(directory),
            "repository": msgspec.to_builtins(repository),
        },
    }

"""Where exports go and come from in tests, and how somebody malicious changes one."""

import hashlib
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import msgspec

from muniment.database.connections import Database
from muniment.repository.bulk.exports import making, rebuilding
from muniment.repository.store import repositories
from muniment.repository.store.content.contract import ContentStore
from muniment.repository.store.content.files import FileStore
from muniment.repository.store.permissions import acls
from muniment.repository.store.permissions.name_keys import Identify
from tests.clock import NOON
from tests.shelf import Shelf

GUARD = "guard of the copy"
CHARTER = hashlib.sha256(b"the charter was sealed").hexdigest()


class Place:
    """A repository that an export goes to, in an installation of its own."""

    def __init__(self, url: str, folder: Path, name: str = "copy") -> None:
        self.database = Database(url)
        self.store: ContentStore = FileStore(folder / "content")
        self.identify: Identify = directory
        with self.database.begin() as cx:
            self.repository = repositories.add(cx, name, GUARD, "", NOON)
            acls.initialise(cx, self.repository.id, NOON)

    def bring_in(self, export: Path) -> None:
        """Import an export to its end."""
        self.begin(export)
        self.go_on(export)

    def begin(self, export: Path) -> None:
        """Begin an import."""
        checked = rebuilding.inspect(export, nothing)
        with self.database.begin() as cx:
            rebuilding.begin(cx, self.repository, checked, GUARD)

    def go_on(self, export: Path, show: making.Progress | None = None) -> None:
        """Go on with an import that was begun."""
        checked = rebuilding.inspect(export, nothing)
        rebuilding.run(
            self.database, self.store, self.repository, checked, self.identify, lambda: NOON + 77, show or nothing
        )
        with self.database.begin() as cx:
            guard = rebuilding.finish(cx, self.repository)
            repositories.guard(cx, self.repository, guard)

    @property
    def guard(self) -> str:
        """The resource that guards the repository now."""
        with self.database.read() as cx:
            return repositories.find(cx, self.repository.name).resource_id


def nothing(*_progress: object) -> None:
    """Show no progress."""


def directory(names: Collection[str]) -> dict[str, str]:
    """Answer as a directory that knows the second Jon."""
    return {"jon@demo": "identity of the second"} if "jon@demo" in names else {}


def export(shelf: Shelf | Place, folder: Path) -> making.ExportResult:
    """Write a repository into a folder."""
    return making.make(shelf.database, shelf.store, shelf.repository, folder, "1.0", NOON, lambda: None, nothing)


def files(folder: Path) -> dict[str, bytes]:
    """All files of an export but its manifest, by their paths in it."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "manifest.json"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def rewrite(folder: Path, name: str, change: Callable[[list[Any]], object]) -> None:
    """Change the lines of a file, and let the manifest describe the new ones, as somebody malicious can."""
    some = [msgspec.json.decode(line) for line in (folder / name).read_bytes().splitlines()]
    change(some)
    text = b"".join(msgspec.json.encode(line) + b"\n" for line in some)
    replace(folder, name, text)


def replace(folder: Path, name: str, text: bytes) -> None:
    """Replace a file of an export, and let the manifest describe the new one."""
    (folder / name).write_bytes(text)
    manifest = msgspec.json.decode((folder / "manifest.json").read_bytes())
    digest = hashlib.sha256(text).hexdigest()
    manifest["files"][name] = {"lines": text.count(b"\n"), "bytes": len(text), "sha256": digest}
    (folder / "manifest.json").write_bytes(msgspec.json.encode(manifest))


def numbered(some: list[Any], **values: Any) -> int:
    """Say which line has these values."""
    return next(at for at, line in enumerate(some) if all(line.get(name) == value for name, value in values.items()))

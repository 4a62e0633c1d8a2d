"""Open a data folder for a command: its settings, its lock, its databases."""

import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from typing import get_args

import structlog
from sqlalchemy.engine import Connection

from muniment.database import schema
from muniment.database.connections import Database, Half
from muniment.directory.entries import entries, identities
from muniment.directory.refusals import NameTaken, UnknownPartition
from muniment.ground import clock, locks
from muniment.ground.naming import fold_name
from muniment.installation import settings
from muniment.installation.exit_codes import Exit, Failure
from muniment.installation.layout import UNFINISHED_RESTORE, Installation
from muniment.installation.settings import Settings
from muniment.repository.store.permissions import name_keys
from muniment.repository.store.permissions.principals import Principals

log = structlog.get_logger("muniment.data")

_LOCK_BYTES = 4096


class DataFolder:
    """The data folder and settings of one command."""

    def __init__(self, path: Path, config: Path | None, overrides: Sequence[str]) -> None:
        self.path = path.absolute()
        self._config = config
        self._overrides = list(overrides)

    def override(self, key: str, value: object | None) -> None:
        """A command's own option wins over every other source; None changes nothing."""
        if value is not None:
            self._overrides.append(f"{key}={value}")
            self.__dict__.pop("settings", None)

    @cached_property
    def settings(self) -> Settings:
        """Raises BadSettings."""
        return settings.read(self.settings_file, overrides=self._overrides, file_must_exist=self._config is not None)

    @property
    def installation(self) -> Installation:
        return Installation(self.path, self.settings)

    @property
    def together(self) -> bool:
        """Whether both halves run here, and the repository asks the directory in this folder."""
        return set(self.settings.halves) == {"directory", "repository"} and not self.settings.repository.tokeninfo_url

    @property
    def now(self) -> clock.Instant:
        """Each use reads the clock."""
        return clock.now()

    def make_folder(self) -> None:
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path.chmod(0o700)

    @property
    def settings_file(self) -> Path:
        return self._config or self.path / "muniment.toml"

    def read_settings_again(self) -> None:
        self.__dict__.pop("settings", None)

    def must_be_whole(self) -> None:
        """Raises Failure for a part of a backup."""
        if (self.path / UNFINISHED_RESTORE).exists():
            raise Failure(
                f"{self.path} holds only a part of a backup: a restore did not finish. "
                f"Run 'muniment --data {self.path} restore BACKUP' again, or remove the folder.",
                Exit.NOT_READY,
            )

    def must_exist(self) -> None:
        if not self.path.is_dir():
            raise Failure(
                f"There is no data folder {self.path}: make one with 'muniment --data {self.path} init', "
                "or name another with --data.",
                Exit.NOT_READY,
            )

    @contextmanager
    def database(self, half: Half) -> Iterator[Database]:
        """Raises Failure, SchemaMismatch."""
        if half not in self.settings.halves:
            raise Failure(f"The {half} does not run here: add it to 'halves' in the settings.", Exit.REFUSED)
        self.must_exist()
        self.must_be_whole()
        if self._lacks_file(half):
            raise Failure(f"{self.path} has no database of the {half}: {self._way_out(half)}", Exit.NOT_READY)
        with closing(Database(self.installation.database_url(half))) as database:
            schema.check_schema(database, half)
            yield database

    @contextmanager
    def begin(self, half: Half) -> Iterator[Connection]:
        """Raises what ``database`` raises."""
        with self.database(half) as database, database.begin() as cx:
            yield cx

    @contextmanager
    def read(self, half: Half) -> Iterator[Connection]:
        """Raises what ``database`` raises."""
        with self.database(half) as database, database.read() as cx:
            yield cx

    def has_tables(self, half: Half) -> bool:
        """This makes no database."""
        if self._lacks_file(half):
            return False
        with closing(Database(self.installation.database_url(half))) as database, database.engine.connect() as cx:
            return schema.revision(cx, half) is not None

    def migrate(self) -> None:
        """If ``together``, also binds names that imports left unbound to present bearers. Raises SchemaMismatch, and
        Failure if the settings give the name of somebody else to the group of the administrators.
        """
        for half in self.settings.halves:
            with closing(Database(self.installation.database_url(half))) as database:
                schema.migrate(database, half)
                if half == "directory":
                    self._check_administrators(database)
        if self.together:
            self._settle_names()

    def _check_administrators(self, database: Database) -> None:
        with database.read() as cx:
            try:
                entries.check_administrators(cx, self.settings.directory.names)
            except UnknownPartition:
                return  # before the first day
            except NameTaken as refusal:
                raise Failure(refusal.sentence, Exit.REFUSED) from refusal

    def identify(self, names: Collection[str]) -> Mapping[str, str]:
        """Empty unless ``together``."""
        if not self.together:
            return {}
        with closing(Database(self.installation.database_url("directory"))) as database, database.read() as cx:
            return identities.identities_of(cx, self.settings.directory.names, names)

    def acting_as(self, user_id: str) -> Principals:
        """It writes to the repository's database: call it before the command opens its transaction."""
        name = fold_name(user_id)
        with self.begin("repository") as cx:
            keys = name_keys.of_names(cx, [name], self.identify, self.now)
        return Principals(user_id, administrator=True, keys=keys, identify=self.identify)

    @contextmanager
    def lock(self, *, for_restore: bool = False) -> Iterator[None]:
        """Raises Failure when another process has it or, without ``for_restore``, after an unfinished restore."""
        if not for_restore:
            self.must_be_whole()
        lock_file = locks.open_file(self.installation.lock)
        try:
            self._take(lock_file)
            os.ftruncate(lock_file, 0)
            os.pwrite(lock_file, str(os.getpid()).encode(), 0)
            yield
        finally:
            os.close(lock_file)

    def announce(self, address: str) -> None:
        """Call this while the lock is held."""
        self.installation.lock.write_text(f"{os.getpid()}\n{address}\n", "utf-8")

    @property
    def server_address(self) -> str:
        """If no server runs, the settings' address."""
        try:
            lock_file = os.open(self.installation.lock, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return self.installation.base
        try:
            locks.take(lock_file, wait=False, shared=True)
        except locks.Held:
            _, _, address = os.pread(lock_file, _LOCK_BYTES, 0).decode("utf-8", "replace").partition("\n")
            return address.strip() or self.installation.base
        finally:
            os.close(lock_file)
        return self.installation.base

    def _way_out(self, half: Half) -> str:
        others = [other for other in get_args(Half) if other != half and self.has_tables(other)]
        if others:
            return (
                f"it is the folder of a {others[0]} alone. Give this command for the folder of the {half} (--data), "
                f"and this folder's settings or --set halves={others[0]} with commands of the {others[0]}."
            )
        return f"run 'muniment --data {self.path} init' first, or name another folder with --data."

    def _lacks_file(self, half: Half) -> bool:
        # SQLite makes a missing file when it is opened.
        file = self.installation.database_file(half)
        return file is not None and not file.exists()

    def _settle_names(self) -> None:
        """Those that imports left unbound get their present bearers (decision 0019)."""
        borne_count = unborne_count = 0
        with self.database("repository") as database:
            while True:
                with database.begin() as cx:
                    counts = name_keys.settle(cx, self.identify, self.now)
                if not any(counts):
                    break
                borne_count += counts.borne
                unborne_count += counts.unborne
        if borne_count or unborne_count:
            log.info("names bound", to_users_and_groups=borne_count, to_nobody=unborne_count)

    def _take(self, lock: int) -> None:
        # The processes of a killed server release the lock within moments.
        deadline = time.monotonic() + 2
        while True:
            try:
                locks.take(lock, wait=False)
            except locks.Held:
                if time.monotonic() >= deadline:
                    holder = os.pread(lock, 20, 0).decode("ascii", "replace").partition("\n")[0] or "unknown"
                    raise Failure(
                        f"The data folder {self.path} is in use by process {holder}: stop that server first, "
                        "or name another folder with --data.",
                        Exit.IN_USE,
                    ) from None
                time.sleep(0.05)
            else:
                return

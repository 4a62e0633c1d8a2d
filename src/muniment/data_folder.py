"""A data folder as a command finds it: its settings, its lock, its databases."""

import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path

import structlog

from muniment import app, clock, guards, locks, schema, settings
from muniment.clock import Instant
from muniment.db import Database, Half
from muniment.exit_codes import Exit, Failure
from muniment.installation import UNFINISHED_RESTORE, Installation
from muniment.naming import fold_name
from muniment.repository.permissions import bearers
from muniment.repository.permissions.acls import AclSummary
from muniment.repository.permissions.principals import Principals
from muniment.settings import Settings

log = structlog.get_logger("muniment.data")


class DataFolder:
    """The data folder and settings a command was started with, opened as far as the command asks."""

    def __init__(self, path: Path, config: Path | None, overrides: Sequence[str]) -> None:
        self.path = path.absolute()
        self._config = config
        self._overrides = list(overrides)

    def override(self, key: str, value: object | None) -> None:
        """Let a command's own option win over every other source; None leaves the setting alone."""
        if value is not None:
            self._overrides.append(f"{key}={value}")
            self.__dict__.pop("settings", None)

    @cached_property
    def settings(self) -> Settings:
        """The settings in force. Raises BadSettings."""
        return settings.read(self.settings_file, overrides=self._overrides, file_must_exist=self._config is not None)

    @property
    def installation(self) -> Installation:
        """The data folder with its settings."""
        return Installation(self.path, self.settings)

    @property
    def together(self) -> bool:
        """Whether the repository's callers are those of the directory in this folder."""
        return set(self.settings.halves) == {"directory", "repository"} and not self.settings.repository.tokeninfo_url

    @property
    def now(self) -> Instant:
        """The time, read once for each use."""
        return clock.now()

    def make_folder(self) -> None:
        """Make the data folder, or leave it to its owner alone (mode 0700)."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path.chmod(0o700)

    @property
    def settings_file(self) -> Path:
        """The file that settings are read from, if it is there."""
        return self._config or self.path / "muniment.toml"

    def read_settings_again(self) -> None:
        """Forget the settings: their file has come meanwhile."""
        self.__dict__.pop("settings", None)

    def must_be_whole(self) -> None:
        """Raise Failure when the data folder holds a part of a backup only."""
        if (self.path / UNFINISHED_RESTORE).exists():
            raise Failure(
                f"{self.path} holds only a part of a backup: a restore did not come to its end. "
                f"Give 'muniment --data {self.path} restore BACKUP' again, or remove the folder.",
                Exit.NOT_READY,
            )

    def must_exist(self) -> None:
        """Raise Failure unless the data folder has been initialised."""
        if not self.path.is_dir():
            raise Failure(
                f"There is no data folder {self.path}: make one with 'muniment --data {self.path} init', "
                "or name another with --data.",
                Exit.NOT_READY,
            )

    @contextmanager
    def database(self, half: Half) -> Iterator[Database]:
        """Open the half's database at this release's schema. Raises Failure and SchemaMismatch."""
        if half not in self.settings.halves:
            raise Failure(f"The {half} does not run here: add it to 'halves' in the settings.", Exit.REFUSED)
        self.must_exist()
        self.must_be_whole()
        database = Database(self.installation.database_url(half))
        try:
            schema.check_schema(database, half)
            yield database
        finally:
            database.close()

    def migrate(self) -> None:
        """Bring the databases of the halves that run here to this release's schema."""
        for half in self.settings.halves:
            database = Database(self.installation.database_url(half))
            try:
                schema.migrate(database, half)
            finally:
                database.close()
        if self.together:
            self._settle_names()

    def settle_acls(self) -> list[tuple[str, AclSummary]]:
        """Give the ACLs of a migrated folder whose bare names now mean them to their owners alone, once."""
        if "repository" not in self.settings.halves:
            return []
        options = self.settings.repository
        with ExitStack() as stack:
            directory = stack.enter_context(self.database("directory")) if self.together else None
            rights = None if directory is None else stack.enter_context(directory.read())
            repository = stack.enter_context(self.database("repository"))
            cx = stack.enter_context(repository.begin())
            return guards.settle_acls(rights, cx, self.settings.directory.names, options.administrators)

    def identify(self, names: Collection[str]) -> Mapping[str, str]:
        """Ask the directory of this folder who bears these names now; of one elsewhere nothing is known here."""
        if not self.together:
            return {}
        database = Database(self.installation.database_url("directory"))
        try:
            return app.bearing(database, self.settings)(names)
        finally:
            database.close()

    def acting_as(self, user_id: str) -> Principals:
        """Give who acts from the command line in this user's name: with every permission, owning what they make.

        It writes to the repository's database, so it comes before a transaction of the command's own.
        """
        name = fold_name(user_id)
        with self.database("repository") as database, database.begin() as cx:
            keys = bearers.of_names(cx, [name], self.identify, self.now)
        return Principals(user_id, administrator=True, keys=keys, identify=self.identify)

    @contextmanager
    def held(self, *, for_restore: bool = False) -> Iterator[None]:
        """Hold the data folder for this process and its children alone.

        Raises Failure when another one serves it; when a restore did not come to its end, unless this is another.
        """
        if not for_restore:
            self.must_be_whole()
        lock = locks.open_file(self.installation.lock)
        try:
            self._take(lock)
            os.ftruncate(lock, 0)
            os.pwrite(lock, str(os.getpid()).encode(), 0)
            yield
        finally:
            os.close(lock)

    def _settle_names(self) -> None:
        """Bind the names of a migrated folder to whoever bears them now (decision 0019)."""
        borne = unborne = 0
        with self.database("repository") as database:
            while True:
                with database.begin() as cx:
                    settled = bearers.settle(cx, self.identify, self.now)
                if not any(settled):
                    break
                borne, unborne = borne + settled.borne, unborne + settled.unborne
        if borne or unborne:
            log.info("names bound", to_users_and_groups=borne, to_nobody=unborne)

    def _take(self, lock: int) -> None:
        # The processes of a server that was killed let go within moments of it.
        deadline = time.monotonic() + 2
        while True:
            try:
                locks.take(lock, wait=False)
            except locks.Held:
                if time.monotonic() >= deadline:
                    holder = os.pread(lock, 20, 0).decode("ascii", "replace") or "unknown"
                    raise Failure(
                        f"The data folder {self.path} is in use by process {holder}: stop that server first, "
                        "or name another folder with --data.",
                        Exit.IN_USE,
                    ) from None
                time.sleep(0.05)
            else:
                return

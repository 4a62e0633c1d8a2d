"""Open a data folder for a command: its settings, its lock, its databases."""

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
    """The data folder and settings of one command. Files and databases are opened when the command asks for them."""

    def __init__(self, path: Path, config: Path | None, overrides: Sequence[str]) -> None:
        self.path = path.absolute()
        self._config = config
        self._overrides = list(overrides)

    def override(self, key: str, value: object | None) -> None:
        """Set a setting from a command's own option, which wins over every other source. None changes nothing."""
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
        """Whether the repository's callers are known to the directory in this folder."""
        return set(self.settings.halves) == {"directory", "repository"} and not self.settings.repository.tokeninfo_url

    @property
    def now(self) -> Instant:
        """The present moment; each use reads the clock."""
        return clock.now()

    def make_folder(self) -> None:
        """Make the data folder if it is missing, and let only its owner into it (mode 0700)."""
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path.chmod(0o700)

    @property
    def settings_file(self) -> Path:
        """The file that settings are read from, if it exists."""
        return self._config or self.path / "muniment.toml"

    def read_settings_again(self) -> None:
        """Forget the settings, so that the next use reads the file again."""
        self.__dict__.pop("settings", None)

    def must_be_whole(self) -> None:
        """Raise Failure when the data folder holds only a part of a backup."""
        if (self.path / UNFINISHED_RESTORE).exists():
            raise Failure(
                f"{self.path} holds only a part of a backup: a restore did not finish. "
                f"Run 'muniment --data {self.path} restore BACKUP' again, or remove the folder.",
                Exit.NOT_READY,
            )

    def must_exist(self) -> None:
        """Raise Failure unless the data folder exists."""
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
        """List, once after a migration, the ACLs that only their owners may now call by the bare name."""
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
        """Ask this folder's directory who bears these names now. Without one, nobody is known."""
        if not self.together:
            return {}
        database = Database(self.installation.database_url("directory"))
        try:
            return app.bearing(database, self.settings)(names)
        finally:
            database.close()

    def acting_as(self, user_id: str) -> Principals:
        """Return the principals of a command that acts as this user: with every permission, owning what it makes.

        This writes to the repository's database, so call it before the command opens its own transaction.
        """
        name = fold_name(user_id)
        with self.database("repository") as database, database.begin() as cx:
            keys = bearers.of_names(cx, [name], self.identify, self.now)
        return Principals(user_id, administrator=True, keys=keys, identify=self.identify)

    @contextmanager
    def lock(self, *, for_restore: bool = False) -> Iterator[None]:
        """Lock the data folder for this process and its children.

        Raises Failure when another process has locked it, or when it holds an unfinished restore, unless
        ``for_restore``.
        """
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

    def _settle_names(self) -> None:
        """Bind the names in a migrated folder to their present bearers (decision 0019)."""
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
        # The processes of a killed server release the lock within moments.
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

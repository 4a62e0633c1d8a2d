"""Name the files and folders of a data folder, and its databases."""

from pathlib import Path

import msgspec
import sqlalchemy as sa

from muniment.database.connections import Half
from muniment.installation.settings import Settings
from muniment.web.options import base_address

UNFINISHED_RESTORE = "restore.unfinished"
"""A file in a data folder. It exists while the folder holds only a part of a backup."""


class Installation(msgspec.Struct, frozen=True):
    """One data folder with its settings, and the paths of everything in it."""

    data: Path
    settings: Settings

    def database_url(self, half: Half) -> str:
        """Return the address of the half's database in SQLAlchemy's spelling, with its password."""
        address: str = getattr(self.settings, f"{half}_database")
        if not address:
            return sa.URL.create("sqlite", database=str(self.data / f"{half}.db")).render_as_string()
        url = sa.make_url(address)
        if url.get_backend_name() == "postgresql":
            url = url.set(drivername="postgresql+psycopg")
        return url.render_as_string(hide_password=False)

    def database_file(self, half: Half) -> Path | None:
        url = sa.make_url(self.database_url(half))
        return Path(url.database or "") if url.get_backend_name() == "sqlite" else None

    @property
    def content(self) -> Path:
        return self.data / "content"

    @property
    def content_move(self) -> Path:
        """The file that lists the contents that 'content move' has copied."""
        return self.data / "content-move"

    @property
    def removals(self) -> Path:
        """The file whose lock forbids the removal of content from a store in the network.

        With PostgreSQL, a lock of the database is used instead.
        """
        return self.data / "removals.lock"

    @property
    def indexes(self) -> Path:
        return self.data / "index"

    @property
    def models(self) -> Path:
        return self.data / "models"

    @property
    def imports(self) -> Path:
        """The folder of the lock files of imports."""
        return self.data / "imports"

    @property
    def tls(self) -> Path:
        """The folder of the local CA, and of the certificate that it signs for the listener."""
        return self.data / "tls"

    @property
    def certificate(self) -> Path:
        return Path(self.settings.web.certificate_file or self.tls / "server.pem")

    @property
    def gate(self) -> Path:
        """The folder of the gate's slots, which all processes share."""
        return self.data / "gate"

    @property
    def events(self) -> Path:
        return self.data / "events.log"

    @property
    def counts(self) -> Path:
        """The file in which a server's processes count refusals."""
        return self.data / "events.counts"

    @property
    def lock(self) -> Path:
        """While a server holds the lock, the file names its process and address."""
        return self.data / "serve.lock"

    @property
    def base(self) -> str:
        """The address with which links begin, without a slash at its end."""
        return base_address(self.settings.web)

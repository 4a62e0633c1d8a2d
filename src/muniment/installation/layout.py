"""Name the files and folders of a data folder, and its databases."""

from pathlib import Path

import msgspec
import sqlalchemy as sa

from muniment.database.connections import Half
from muniment.installation.settings import Settings
from muniment.web.options import base_address

UNFINISHED_RESTORE = "restore.unfinished"
"""It exists while the data folder holds only a part of a backup."""


class Installation(msgspec.Struct, frozen=True):
    """One data folder with its settings and paths."""

    data: Path
    settings: Settings

    def database_url(self, half: Half) -> str:
        """In SQLAlchemy's spelling, with its password."""
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
        """Lists the contents that 'content move' has copied."""
        return self.data / "content-move"

    @property
    def removals(self) -> Path:
        """Its lock forbids the removal of content from a store in the network.

        With PostgreSQL, a lock of the database does.
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
        return self.data / "imports"

    @property
    def tls(self) -> Path:
        """The local CA, and the listener's certificate that it signs."""
        return self.data / "tls"

    @property
    def certificate(self) -> Path:
        return Path(self.settings.web.certificate_file or self.tls / "server.pem")

    @property
    def gate(self) -> Path:
        """The gate's slots, which all processes share."""
        return self.data / "gate"

    @property
    def events(self) -> Path:
        return self.data / "events.log"

    @property
    def counts(self) -> Path:
        return self.data / "events.counts"

    @property
    def lock(self) -> Path:
        """Names its process and address while a server holds it."""
        return self.data / "serve.lock"

    @property
    def base(self) -> str:
        """Links begin with it; no slash at its end."""
        return base_address(self.settings.web)

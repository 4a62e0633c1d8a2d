"""One data folder with the settings that hold for it: where everything lies."""

from pathlib import Path

import msgspec
import sqlalchemy as sa

from muniment.db import Half
from muniment.settings import Settings
from muniment.web.transport import base_address

UNFINISHED_RESTORE = "restore.unfinished"
"""The file in a data folder that says that the folder holds a part of a backup only."""


class Installation(msgspec.Struct, frozen=True):
    """One data folder with the settings that hold for it: where everything lies."""

    data: Path
    settings: Settings

    def database_url(self, half: Half) -> str:
        """Give the half's database address as SQLAlchemy reads it."""
        configured = self.settings.directory_database if half == "directory" else self.settings.repository_database
        if not configured:
            return sa.URL.create("sqlite", database=str(self.data / f"{half}.db")).render_as_string()
        url = sa.make_url(configured)
        if url.get_backend_name() == "postgresql":
            url = url.set(drivername="postgresql+psycopg")
        return url.render_as_string(hide_password=False)

    @property
    def content(self) -> Path:
        """The content store's folder."""
        return self.data / "content"

    @property
    def indexes(self) -> Path:
        """The folder of the embedded indexes, one folder in it for each repository."""
        return self.data / "index"

    @property
    def tls(self) -> Path:
        """The folder of the local CA and its certificate."""
        return self.data / "tls"

    @property
    def certificate(self) -> Path:
        """The certificate that the HTTPS listener shows."""
        return Path(self.settings.web.certificate_file or self.tls / "server.pem")

    @property
    def gate(self) -> Path:
        """The folder of the slots that bound password checks over all processes."""
        return self.data / "gate"

    @property
    def events(self) -> Path:
        """The file of security events."""
        return self.data / "events.log"

    @property
    def counts(self) -> Path:
        """The file in which a server's processes count refused sign-ins."""
        return self.data / "events.counts"

    @property
    def lock(self) -> Path:
        """The file that the one server of this data folder holds locked."""
        return self.data / "serve.lock"

    @property
    def base(self) -> str:
        """What every link begins with, without a slash at its end."""
        return base_address(self.settings.web)

"""Where does everything lie in a data folder?"""

from pathlib import Path

import msgspec
import sqlalchemy as sa

from muniment.db import Half
from muniment.settings import Settings
from muniment.web.transport import base_address

UNFINISHED_RESTORE = "restore.unfinished"
"""The file that marks a data folder which holds only a part of a backup."""


class Installation(msgspec.Struct, frozen=True):
    """One data folder with its settings. It knows where everything lies."""

    data: Path
    settings: Settings

    def database_url(self, half: Half) -> str:
        """Return the address of the half's database, as SQLAlchemy reads it."""
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
        """The folder of the indexes; it has one folder for each repository."""
        return self.data / "index"

    @property
    def tls(self) -> Path:
        """The folder of the local CA and its certificate."""
        return self.data / "tls"

    @property
    def certificate(self) -> Path:
        """The certificate file that the HTTPS listener uses."""
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
        """The address with which every link begins, without a slash at its end."""
        return base_address(self.settings.web)

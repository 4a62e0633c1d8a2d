"""Name the files and folders of a data folder, and its databases."""

from pathlib import Path

import msgspec
import sqlalchemy as sa

from muniment.database.connections import Half
from muniment.installation.settings import Settings
from muniment.web.options import base_address

UNFINISHED_RESTORE = "restore.unfinished"
"""It exists while the data folder holds only a part of a backup."""


class _Below:
    """The path of what has this name in the data folder."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, installation: "Installation", _owner: type) -> Path:
        return installation.data / self._name


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

    content = _Below("content")

    content_move = _Below("content-move")
    """The file that lists the contents that 'content move' has copied."""

    removals = _Below("removals.lock")
    """The file whose lock forbids the removal of content from a store in the network.

    With PostgreSQL, a lock of the database is used instead.
    """

    indexes = _Below("index")

    models = _Below("models")

    imports = _Below("imports")
    """The folder of the lock files of imports."""

    tls = _Below("tls")
    """The folder of the local CA, and of the certificate that it signs for the listener."""

    @property
    def certificate(self) -> Path:
        return Path(self.settings.web.certificate_file or self.tls / "server.pem")

    @property
    def certificate_names(self) -> list[str]:
        """Those in a certificate of the local CA, beside the ones that each has."""
        return [self.settings.web.host, *self.settings.web.certificate_names]

    gate = _Below("gate")
    """The folder of the gate's slots, which all processes share."""

    events = _Below("events.log")

    counts = _Below("events.counts")
    """The file in which a server's processes count refusals."""

    lock = _Below("serve.lock")
    """While a server holds the lock, the file names its process and address."""

    @property
    def base(self) -> str:
        """Links begin with it; no slash at its end."""
        return base_address(self.settings.web)

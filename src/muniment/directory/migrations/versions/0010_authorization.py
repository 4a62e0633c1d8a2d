"""Let the directory keep what users have allowed in a browser: codes, devices that wait, and tokens with successors."""

from functools import partial

import sqlalchemy as sa
from alembic import op

revision = "directory_0010"
down_revision = "directory_0009"

_BIG_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_required = partial(sa.Column, nullable=False)


def upgrade() -> None:
    _codes()
    _devices()
    op.add_column("grants", sa.Column("family", sa.LargeBinary))
    op.add_column("grants", sa.Column("rotated", sa.BigInteger))
    op.create_index("ix_grants_family", "grants", ["family"], unique=True)


def _codes() -> None:
    op.create_table(
        "authorization_codes",
        sa.Column("digest", sa.LargeBinary, primary_key=True),
        _required("client_id", sa.BigInteger, index=True),
        _required("user_id", sa.BigInteger),
        _required("auth_time", sa.BigInteger),
        _required("resource_id", sa.String(36)),
        _required("scopes", sa.Text),
        _required("told", sa.Text),
        _required("redirect_address", sa.Text),
        sa.Column("challenge", sa.String(43)),
        sa.Column("nonce", sa.Text),
        _required("ticket", sa.LargeBinary),
        _required("expires", sa.BigInteger, index=True),
        sa.Column("grant_id", sa.BigInteger),
    )


def _devices() -> None:
    op.create_table(
        "device_codes",
        sa.Column("digest", sa.LargeBinary, primary_key=True),
        _required("user_code", sa.String(43), unique=True),
        _required("client_id", sa.BigInteger),
        _required("resource_id", sa.String(36)),
        _required("scopes", sa.Text),
        _required("told", sa.Text),
        _required("place", sa.String(64)),
        _required("expires", sa.BigInteger, index=True),
        _required("interval", sa.Integer),
        sa.Column("asked", sa.BigInteger),
        sa.Column("user_id", sa.BigInteger),
        sa.Column("decision", sa.String(10)),
        sa.Column("ticket", sa.LargeBinary),
        sa.Column("auth_time", sa.BigInteger),
        sa.Index("ix_device_codes_of_client", "client_id", "place", "expires"),
    )
    op.create_table(
        "wrong_user_codes",
        sa.Column("user_id", _BIG_ID, sa.ForeignKey("entries.id", ondelete="CASCADE"), primary_key=True),
        _required("count", sa.Integer),
        _required("until", sa.BigInteger),
    )

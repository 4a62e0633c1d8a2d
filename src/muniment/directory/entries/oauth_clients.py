"""How may an OAuth client be used: for how long, by whom, and for what (decision 0118)? What nobody has set is as the
directory's options say.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import PreparedStatement, directory_tables, portions, required, required_columns
from muniment.database.statements import upsert
from muniment.directory import audit
from muniment.directory.entries.changes import touch
from muniment.directory.entries.table import Entry, Impersonation, rows
from muniment.directory.refusals import BadAttribute
from muniment.ground.clock import Instant
from muniment.ground.naming import fold_name, is_storable

Made = Literal["password", "client_credentials", "authorization_code", "device_code", "token_exchange"]
"""How a grant is made: the grant types of RFC 6749 4.1, 4.3 and 4.4, RFC 8628 and RFC 8693."""

GRANT_TYPES: Mapping[Made, str] = {
    "password": "password",
    "client_credentials": "client_credentials",
    "authorization_code": "authorization_code",
    "device_code": "urn:ietf:params:oauth:grant-type:device_code",
    "token_exchange": "urn:ietf:params:oauth:grant-type:token-exchange",
}
"""Their names at the token endpoint."""

Pkce = Literal["required", "pkce_or_nonce", "none"]
Authentication = Literal["secret", "private_key_jwt"]

_LISTS = ("redirect_urls", "allowed_scopes", "default_scopes", "impersonate_list", "auth_scopes", "denied_grants")
_SECONDS = ("access_seconds", "refresh_seconds", "code_seconds")

_settings = sa.Table(
    "oauth_clients",
    directory_tables,
    sa.Column("entry_id", sa.ForeignKey("entries.id", ondelete="CASCADE"), primary_key=True),
    *required_columns(sa.Text, *_LISTS),
    *(sa.Column(name, sa.Integer) for name in _SECONDS),
    *required_columns(sa.Boolean, "allow_refresh_token", "allow_impersonation", "use_session_refresh_seconds"),
    *required_columns(sa.Text, "logout_url", "logout_method", "jwks", "pkce", "authentication"),
    required("default_resource", sa.String(36)),
    *required_columns(sa.Boolean, "may_administer", "takes_endpoint_audience"),
    sa.Column("rotates", sa.Boolean),
)


class ClientSettings(msgspec.Struct, frozen=True):
    """Without seconds, those of the directory's options count. ``auth_scopes`` are the partitions, by the numbers of
    their entries, whose users may sign in with the client; empty means all. ``allowed_scopes``, if any, are those that
    it may ask for, except by a password; ``default_scopes`` and ``default_resource``, an identifier, are what it gets
    without asking. By ``denied_grants`` it gets no grant.

    ``authentication`` is by a secret, if the client has one, or by an assertion that a key of ``jwks`` signed (RFC
    7523), a JSON Web Key Set as text; with ``takes_endpoint_audience`` an assertion may name the token endpoint as its
    audience. ``pkce`` says when a confidential client may ask for a code without a challenge; a public one never may.
    ``rotates``: whether each refresh gives a new refresh token; None leaves it to how the grant was made.
    ``may_administer``: it may ask for the administration's resource also where no user gives it a password.

    ``use_session_refresh_seconds`` and the logout are kept and shown.
    """

    redirect_urls: tuple[str, ...] = ()
    allowed_scopes: tuple[str, ...] = ()
    default_scopes: tuple[str, ...] = ()
    impersonate_list: tuple[str, ...] = ()
    auth_scopes: tuple[int, ...] = ()
    denied_grants: tuple[Made, ...] = ("device_code",)
    access_seconds: int | None = None
    refresh_seconds: int | None = None
    code_seconds: int | None = None
    allow_refresh_token: bool = True
    allow_impersonation: bool = False
    use_session_refresh_seconds: bool = False
    logout_url: str = ""
    logout_method: str = ""
    jwks: str = ""
    pkce: Pkce = "required"
    authentication: Authentication = "secret"
    default_resource: str = ""
    may_administer: bool = False
    takes_endpoint_audience: bool = False
    rotates: bool | None = None

    @property
    def by_key(self) -> bool:
        """Whether the client authenticates by an assertion."""
        return self.authentication == "private_key_jwt"

    def is_confidential(self, *, has_secret: bool) -> bool:
        """Whether a client must authenticate, by a secret that it has or by a key."""
        return has_secret or self.by_key


def laxities(settings: ClientSettings, *, has_secret: bool) -> list[str]:
    """What an administrator should know of a client, because RFC 9700 (2.1.1, 2.4) advises against it."""
    told = []
    takes_neither = settings.pkce == "none" and "authorization_code" not in settings.denied_grants
    if takes_neither and settings.is_confidential(has_secret=has_secret):
        told.append("neither PKCE nor nonce")
    if "password" not in settings.denied_grants:
        told.append("password grant")
    return told


DEFAULTS = ClientSettings()


def read(cx: Connection, client_ids: Sequence[int]) -> dict[int, ClientSettings]:
    """Of every client, by its entry's number."""
    found = dict.fromkeys(client_ids, DEFAULTS)
    for portion in portions(sorted(found)):
        query = sa.select(*_COLUMNS, _settings.c.entry_id).where(_settings.c.entry_id.in_(portion))
        found |= {row[-1]: to_settings(row) for row in cx.execute(query)}
    return found


def settings_of(cx: Connection, client_id: int) -> ClientSettings:
    """Those of one client, by its entry's number."""
    row = _OF_ONE.first(cx, client=client_id)
    return DEFAULTS if row is None else to_settings(row)


def impersonation_of(settings: ClientSettings) -> Impersonation:
    return Impersonation(settings.allow_impersonation, frozenset(map(fold_name, settings.impersonate_list)))


def write(cx: Connection, client: Entry, settings: ClientSettings, now: Instant) -> None:
    """Raises BadAttribute."""
    values = msgspec.structs.asdict(settings)
    for name in _SECONDS:
        if values[name] is not None and not 0 < values[name] <= _LONGEST:
            raise BadAttribute(f"A lifetime is 1 to {_LONGEST} seconds.")
    for name, choice in (("pkce", Pkce), ("authentication", Authentication)):
        if values[name] not in get_args(choice):
            raise BadAttribute(f"{name} is one of {', '.join(get_args(choice))}.")
    if not set(settings.denied_grants) <= set(get_args(Made)):
        raise BadAttribute(f"The grants that can be denied are {', '.join(get_args(Made))}.")
    for name in _LISTS:
        values[name] = msgspec.json.encode(values[name]).decode()
    if not all(is_storable(text) and len(text) <= _LONGEST_TEXT for text in values.values() if isinstance(text, str)):
        raise BadAttribute(f"A list of a client's settings has at most {_LONGEST_TEXT} characters, without NUL.")
    former = settings_of(cx, client.id)
    touch(cx, client, now)
    cx.execute(_PUT, {"entry_id": client.id, **values})
    changed = [name for name in ClientSettings.__struct_fields__ if getattr(former, name) != getattr(settings, name)]
    before, after = ({name: getattr(each, name) for name in changed} for each in (former, settings))
    switches = _switch(former), _switch(settings)
    rights = [audit.Right("impersonation", client.uuid, "", *switches)] if switches[0] != switches[1] else []
    audit.record(cx, "client changed", client.target, before, after, rights=rights)


def _switch(settings: ClientSettings) -> str:
    """For the history of rights: for whom the client may act."""
    return ", ".join(settings.impersonate_list) or "everybody" if settings.allow_impersonation else ""


def with_settings(query: sa.Select[Any]) -> sa.Select[Any]:
    """Add the columns that ``to_settings`` reads, to a query of ``table.select_entries``."""
    return query.add_columns(*_COLUMNS).outerjoin_from(rows, _settings, _settings.c.entry_id == rows.c.id)


def to_settings(row: Sequence[Any]) -> ClientSettings:
    if row[0] is None:
        return DEFAULTS
    values: list[Any] = [tuple(msgspec.json.decode(text)) for text in row[: len(_LISTS)]]
    return ClientSettings(*values, *row[len(_LISTS) : WIDTH])


WIDTH = len(ClientSettings.__struct_fields__)
"""So many columns ``with_settings`` adds."""
_LONGEST = 31_536_000
_LONGEST_TEXT = 100_000
_COLUMNS = _settings.c[ClientSettings.__struct_fields__]
_OF_ONE = PreparedStatement(sa.select(*_COLUMNS).where(_settings.c.entry_id == sa.bindparam("client")))
_NEW = upsert(_settings)
_PUT = _NEW.on_conflict_do_update(
    index_elements=["entry_id"], set_={name: _NEW.excluded[name] for name in ClientSettings.__struct_fields__}
)

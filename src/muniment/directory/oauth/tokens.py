"""Is this string a token of ours, and to which grant does it belong (decision 0021)?

A token is a value of ``minting``; a string that is none "cannot be parsed" (given 7). Only its digest is stored.
"""

import hashlib
import secrets
import uuid
from collections.abc import Collection, Sequence
from itertools import product
from typing import Any, Literal, NamedTuple, get_args

import msgspec
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from muniment.database.connections import PreparedStatement
from muniment.directory import minting, version_stamps
from muniment.directory.entries import system
from muniment.directory.entries.oauth_clients import Made
from muniment.directory.oauth import signing_keys
from muniment.directory.oauth.access import Question
from muniment.directory.oauth.table import ALLOWED, grant_table, token_table
from muniment.directory.refusals import DeadToken, UnparseableToken
from muniment.directory.version_stamps import VersionStamps
from muniment.ground.clock import Instant

Kind = Literal["access", "refresh"]
Party = Literal["user", "client", "resource"]
"""Each has a column for its id in the table of grants."""

_DEAD = "The token has expired or was revoked."
FEW = 64
"""With fewer live access tokens, each refresh counts them anew; else the grant's row may hold an upper bound
(``live_bound``).
"""

_MOST_ALLOWED = 100
_DIGEST = 32


class ParsedToken(msgspec.Struct, frozen=True):
    """A token of ours: its kind, its digest, and of a refresh token the digest that it shares with its successors."""

    kind: Kind
    digest: bytes
    family: bytes = b""


class Grant(msgspec.Struct, frozen=True):
    """One sign-in of a user with a client at a resource, whose id is empty if it is at none. Tokens may be issued until
    ``expires``.

    ``scopes`` are the scopes granted beside that of the resource, with a space between two, by their neutral names; or,
    if they are ``narrowed``, those of one access token, which has fewer. The user authenticated at ``authenticated``,
    if they did. ``actor_id`` is who acts for the user by delegation (RFC 8693).
    """

    id: int
    user_id: int
    client_id: int
    resource_id: str
    expires: Instant
    revoked: Instant | None
    scopes: str = ""
    made: Made = "password"
    authenticated: Instant | None = None
    actor_id: int | None = None
    narrowed: bool = False

    @property
    def question(self) -> Question:
        exchanged = self.made == "token_exchange"
        return Question(self.client_id, self.user_id, self.resource_id, exchanged, self.actor_id)

    def alive(self, now: Instant) -> bool:
        return self.revoked is None and now < self.expires


class LockedGrant(NamedTuple):
    """A locked grant, with the directory's generation, read in the same snapshot.

    Until ``full_until`` the grant has all the live access tokens that it may have, or more; 0 while it has fewer.
    ``live_bound`` is an upper bound of their number, or None where none is kept. ``newest`` is the digest of its newest
    refresh token. If this ``has_successors``, the last one was made at ``rotated``, if one was.
    """

    grant: Grant
    generation: str
    full_until: Instant
    live_bound: int | None
    newest: bytes
    has_successors: bool = False
    rotated: Instant | None = None


class TokenState(msgspec.Struct, frozen=True):
    """An access token's row, its grant, and the directory's marks, from one statement."""

    token_id: str
    expires: Instant
    grant: Grant
    marks: VersionStamps
    issued: Instant = 0

    def require_alive(self, now: Instant) -> None:
        if now >= self.expires or not self.grant.alive(now):
            raise DeadToken(_DEAD)


def parse(cx: Connection, token: str) -> ParsedToken:
    """Raises UnparseableToken for a string that this directory did not issue (given 7).

    A JWT is known by its id, because a signature can be written in several ways.
    """
    if signing_keys.looks_signed(token):
        token_id = signing_keys.read(cx, token, signing_keys.ACCESS_TOKEN).get("jti")
        return ParsedToken("access", _digest_of_signed(str(token_id)))
    for kind, key in product(get_args(Kind), system.accepted_keys(cx, "tokens")):
        if (digest := minting.parse(key, kind, token)) is not None:
            return ParsedToken(kind, digest, minting.family(token) if kind == "refresh" else b"")
    raise UnparseableToken("The token cannot be parsed.")


def open_grant(
    cx: Connection,
    user_id: int,
    client_id: int,
    resource_id: str,
    now: Instant,
    expires: Instant,
    *,
    made: Made = "password",
    scopes: str = "",
    authenticated: Instant | None = None,
    actor_id: int | None = None,
    source_id: int | None = None,
    actor_source_id: int | None = None,
    rotates: bool = False,
) -> tuple[Grant, str]:
    """Return it with its refresh token, which a grant type may keep to itself, and which has successors if it
    ``rotates``. It ends with either of the grants ``source_id`` and ``actor_source_id``.
    """
    token, digest = minting.mint(system.key(cx, "tokens"), "refresh")
    draft = Grant(0, user_id, client_id, resource_id, expires, None, scopes, made, authenticated, actor_id)
    family = minting.family(token) if rotates else None
    grant = _open(cx, draft, digest, now, family=family, source_id=source_id, actor_source_id=actor_source_id)
    return grant, token


def open_grants(cx: Connection, drafts: Sequence[Grant], now: Instant) -> list[Grant]:
    """``drafts`` have no numbers yet. The grants have no refresh tokens: no text has such a digest."""
    return [_open(cx, draft, secrets.token_bytes(_DIGEST), now) for draft in drafts]


def add_access_tokens(cx: Connection, expiries: Sequence[tuple[Grant, Instant]], now: Instant) -> list[str]:
    """``expiries`` has for each grant the instant when its new token expires."""
    key, texts, rows = system.key(cx, "tokens"), list[str](), list[dict[str, Any]]()
    for grant, expires in expiries:
        token, digest = minting.mint(key, "access")
        texts.append(token)
        rows.append(_token_row(digest, str(uuid.uuid4()), grant, now, expires))
    if rows:
        _ADD_ACCESS_TOKEN.run_for_each(cx, rows)
    return texts


def add_signed_tokens(cx: Connection, expiries: Sequence[tuple[Grant, Instant]], now: Instant) -> list[str]:
    """The rows of access tokens that are JWTs. Return their ids, each its token's ``jti``."""
    ids = [str(uuid.uuid4()) for _ in expiries]
    rows = [
        _token_row(_digest_of_signed(token_id), token_id, grant, now, expires)
        for token_id, (grant, expires) in zip(ids, expiries, strict=True)
    ]
    _ADD_ACCESS_TOKEN.run_for_each(cx, rows)
    return ids


def count_another(cx: Connection, locked_grants: Sequence[LockedGrant]) -> None:
    """Each gets one more access token: raise the upper bounds that are kept."""
    bounds = [
        {"grant": locked_grant.grant.id, "bound": locked_grant.live_bound + 1}
        for locked_grant in locked_grants
        if locked_grant.live_bound is not None
    ]
    if bounds:
        _KEEP_BOUND.run_for_each(cx, bounds)


def lock_grants(
    cx: Connection, refresh_digests: Sequence[bytes], limit: int, now: Instant, *, wait: bool
) -> dict[bytes, LockedGrant]:
    """Lock those that exist until the commit, by the digests of their refresh tokens.

    A grant with ``limit`` live access tokens is full. On PostgreSQL, without ``wait``, grants that another decision has
    locked are left out.
    """
    if not refresh_digests:
        return {}
    statement = _LOCK_GRANTS if wait else _LOCK_FREE_GRANTS
    rows = statement.all(cx, refresh=refresh_digests, now=now, others=min(limit, FEW) - 1)
    return {bytes(row[0]): _to_locked_grant(cx, row, limit, now) for row in rows}


def lock_family(cx: Connection, family: bytes, limit: int, now: Instant) -> LockedGrant | None:
    """Lock the grant of which a refresh token of this family was the newest once."""
    row = _LOCK_FAMILY.first(cx, family=family, now=now, others=min(limit, FEW) - 1)
    return None if row is None else _to_locked_grant(cx, row, limit, now)


def successor(cx: Connection, refresh_token: str) -> tuple[str, bytes]:
    """The token's successor, always the same under one key, and its digest."""
    return minting.successor(system.key(cx, "tokens"), "refresh", refresh_token)


def successor_of_digest(cx: Connection, refresh_token: str, digest: bytes) -> str | None:
    """The token's successor if it has this digest, under any key whose values are taken."""
    made = (minting.successor(key, "refresh", refresh_token) for key in system.accepted_keys(cx, "tokens"))
    return next((text for text, its_digest in made if its_digest == digest), None)


def rotate(cx: Connection, grant: Grant, newest: bytes, now: Instant) -> None:
    """From now on the refresh token with the digest ``newest`` serves the locked grant."""
    _ROTATE.run_for_each(cx, [{"grant": grant.id, "newest": newest, "now": now}])


def look_up(cx: Connection, digest: bytes) -> TokenState | None:
    """One statement finds the token with its grant, unless it was purged."""
    row = _TOKEN_STATE.first(cx, access=digest)
    return None if row is None else TokenState(row[0], row[1], Grant(*row[5:]), VersionStamps(row[2], row[3]), row[4])


def state_of(cx: Connection, token: str) -> TokenState:
    """The token may have expired. Raises UnparseableToken, also for a refresh token, and DeadToken if it was purged."""
    parsed = parse(cx, token)
    if parsed.kind != "access":
        raise UnparseableToken("The token is no access token.")
    state = look_up(cx, parsed.digest)
    if state is None:
        raise DeadToken(_DEAD)
    return state


def revoke(cx: Connection, token: ParsedToken, now: Instant) -> Grant | None:
    """None, and no change, if the grant had ended before or the token was purged."""
    return _revoked(cx, _REVOKE[token.kind], token, now)


def revoke_own(cx: Connection, token: ParsedToken, client_id: int, now: Instant) -> Grant | None:
    """As ``revoke``, if the token was issued to this client."""
    return _revoked(cx, _REVOKE[token.kind].where(grant_table.c.client_id == client_id), token, now)


def _revoked(cx: Connection, revoke: sa.Update, token: ParsedToken, now: Instant) -> Grant | None:
    digests = {"token_digest": token.digest} | ({"token_family": token.family} if token.kind == "refresh" else {})
    row = cx.execute(revoke.returning(*_GRANT), {**digests, "now": now}).first()
    if row is None:
        return None
    cx.execute(_END_EXCHANGED, {"now": now})
    return Grant(*row)


def live(cx: Connection, grant_ids: Collection[int], now: Instant) -> bool:
    """Whether all of them live. Lock them until the commit: whatever ends one then also ends what is made of it."""
    query = sa.select(*_GRANT).where(grant_table.c.id.in_(grant_ids)).order_by(grant_table.c.id)
    rows = cx.execute(query.with_for_update(read=True)).all()
    return len(rows) == len(set(grant_ids)) and all(Grant(*row).alive(now) for row in rows)


def end_exchanged(cx: Connection, party: Party, party_id: int | str, now: Instant) -> int:
    """Those by which the client acts as users, or somebody acts at the resource."""
    mine = grant_table.c[f"{party}_id"] == party_id
    return cx.execute(_revoke(sa.and_(mine, grant_table.c.made == "token_exchange")), {"now": now}).rowcount


def end_made(cx: Connection, client_id: int, made: Collection[Made], now: Instant) -> int:
    """Those that the client got in one of these ways, and what came of them."""
    which = sa.and_(grant_table.c.client_id == client_id, grant_table.c.made.in_(made))
    return _end_with_exchanged(cx, _revoke(which), now)


def end(cx: Connection, party: Party, party_id: int | str, now: Instant) -> int:
    """A statement marks the grants, and one what came of them, so even a user with a million tokens is signed out at
    once. The purge deletes the rows.
    """
    return _end_with_exchanged(cx, _END[party], now, party=party_id)


def end_every(cx: Connection, now: Instant) -> int:
    return cx.execute(_revoke(sa.true()), {"now": now}).rowcount


def end_one(cx: Connection, digests: tuple[bytes, bytes], now: Instant) -> int:
    """``digests`` are the range of what ``live_grants`` lists first, both ends included."""
    without_family = sa.and_(grant_table.c.family.is_(None), grant_table.c.refresh_digest.between(*digests))
    return _end_with_exchanged(cx, _revoke(sa.or_(without_family, grant_table.c.family.between(*digests))), now)


def end_grant(cx: Connection, grant_id: int, now: Instant) -> int:
    return _end_with_exchanged(cx, _revoke(grant_table.c.id == grant_id), now)


def _end_with_exchanged(cx: Connection, revoke: sa.Update, now: Instant, **values: int | str) -> int:
    count = cx.execute(revoke, {**values, "now": now}).rowcount
    return count + cx.execute(_END_EXCHANGED, {"now": now}).rowcount if count else 0


def live_grants(cx: Connection, party: Party, party_id: int | str, now: Instant, limit: int) -> Sequence[Sequence[Any]]:
    """At most ``limit``, the newest first.

    A row: the digest of the refresh token, or of its family if it has successors, the ids of user, client and resource,
    when it was made and expires.
    """
    query = (
        sa.select(
            sa.func.coalesce(grant_table.c.family, grant_table.c.refresh_digest),
            *grant_table.c["user_id", "client_id", "resource_id", "created", "refresh_expires"],
        )
        .where(
            grant_table.c[f"{party}_id"] == party_id,
            grant_table.c.revoked.is_(None),
            grant_table.c.refresh_expires > now,
        )
        .order_by(grant_table.c.id.desc())
        .limit(limit)
    )
    return cx.execute(query).all()


def allowed(cx: Connection, question: Question, now: Instant) -> set[str]:
    """The scopes of living grants that their user allowed in a browser."""
    about = {"user": question.user_id, "client": question.client_id, "resource": question.resource_id}
    return {row[0] for row in _ALLOWED.all(cx, **about, now=now)}


def _open(cx: Connection, draft: Grant, digest: bytes, now: Instant, **more: bytes | int | None) -> Grant:
    """``digest`` is that of the refresh token."""
    row = msgspec.structs.asdict(draft) | dict.fromkeys(("family", "source_id", "actor_source_id")) | more
    row |= {"refresh_digest": digest, "refresh_expires": draft.expires, "created": now}
    inserted = _OPEN_GRANT.first(cx, **{parameter: row[name] for name, parameter in _OPENED.items()})
    assert inserted is not None  # noqa: S101 - what was inserted is returned
    return msgspec.structs.replace(draft, id=inserted[0])


def _token_row(digest: bytes, token_id: str, grant: Grant, now: Instant, expires: Instant) -> dict[str, Any]:
    row = {"digest": digest, "id": token_id, "grant_id": grant.id, "issued": now, "expires": expires}
    return row | {"scopes": grant.scopes if grant.narrowed else None}


def _digest_of_signed(token_id: str) -> bytes:
    return hashlib.sha256(f"jwt {token_id}".encode()).digest()


def _to_locked_grant(cx: Connection, row: Sequence[Any], limit: int, now: Instant) -> LockedGrant:
    """Live tokens are counted only if the row does not show whether the grant is full."""
    full_until, live_bound, grant = row[2] or 0, row[3], Grant(*row[6:])
    if not full_until:
        live_bound = None
    elif limit > FEW:
        full_until = 0
        if live_bound is None or live_bound >= limit:
            count_row = _COUNT_LIVE.first(cx, grant=grant.id, now=now, others=limit - 1)
            assert count_row is not None  # noqa: S101 - a statement that counts has one row
            live_bound, full_until = count_row[0], count_row[1] or 0
    return LockedGrant(grant, row[1], full_until, live_bound, bytes(row[0]), bool(row[4]), row[5])


_GRANT = grant_table.c[
    "id",
    "user_id",
    "client_id",
    "resource_id",
    "refresh_expires",
    "revoked",
    "scopes",
    "made",
    "authenticated",
    "actor_id",
]
_LATER = ("id", "live_bound", "rotated")
_OPENED = {name: f"new_{name}" for name in grant_table.c.keys() if name not in _LATER}  # noqa: SIM118
_OPEN_GRANT = PreparedStatement(
    grant_table.insert()
    .values({name: sa.bindparam(parameter, type_=grant_table.c[name].type) for name, parameter in _OPENED.items()})
    .returning(grant_table.c.id)
)
_ALLOWED = PreparedStatement(
    sa.select(grant_table.c.scopes)
    .where(
        grant_table.c.user_id == sa.bindparam("user"),
        grant_table.c.client_id == sa.bindparam("client"),
        grant_table.c.resource_id == sa.bindparam("resource"),
        ALLOWED,
        grant_table.c.refresh_expires > sa.bindparam("now"),
    )
    .limit(_MOST_ALLOWED)
)
_ADD_ACCESS_TOKEN = PreparedStatement(token_table.insert())
_LIVE_OF_GRANT = (
    sa.select(token_table.c.expires)
    .where(token_table.c.grant_id == grant_table.c.id, token_table.c.expires > sa.bindparam("now"))
    .order_by(token_table.c.expires.desc())
)
_REFRESHED = sa.select(
    grant_table.c.refresh_digest,
    version_stamps.GENERATION,
    _LIVE_OF_GRANT.limit(1).offset(sa.bindparam("others")).scalar_subquery(),
    grant_table.c.live_bound,
    grant_table.c.family.is_not(None),
    grant_table.c.rotated,
    *_GRANT,
)
_BY_NEWEST = _REFRESHED.where(grant_table.c.refresh_digest.in_(sa.bindparam("refresh", expanding=True)))
_LOCK_GRANTS = PreparedStatement(_BY_NEWEST.with_for_update(of=grant_table))
_LOCK_FREE_GRANTS = PreparedStatement(_BY_NEWEST.with_for_update(of=grant_table, skip_locked=True))
_LOCK_FAMILY = PreparedStatement(
    _REFRESHED.where(grant_table.c.family == sa.bindparam("family")).with_for_update(of=grant_table)
)
_ROTATE = PreparedStatement(
    grant_table.update()
    .where(grant_table.c.id == sa.bindparam("grant"))
    .values(refresh_digest=sa.bindparam("newest"), rotated=sa.bindparam("now"))
)
_live = token_table.alias("live")
_IS_LIVE = sa.and_(_live.c.grant_id == sa.bindparam("grant"), _live.c.expires > sa.bindparam("now"))
_COUNT_LIVE = PreparedStatement(
    sa.select(
        sa.select(sa.func.count()).where(_IS_LIVE).scalar_subquery(),
        sa.select(_live.c.expires)
        .where(_IS_LIVE)
        .order_by(_live.c.expires.desc())
        .limit(1)
        .offset(sa.bindparam("others"))
        .scalar_subquery(),
    )
)
_KEEP_BOUND = PreparedStatement(
    grant_table.update().where(grant_table.c.id == sa.bindparam("grant")).values(live_bound=sa.bindparam("bound"))
)
_TOKEN_STATE = PreparedStatement(
    sa.select(
        *token_table.c["id", "expires"],
        version_stamps.GENERATION,
        version_stamps.ENDINGS,
        token_table.c.issued,
        *(sa.func.coalesce(token_table.c.scopes, each) if each.name == "scopes" else each for each in _GRANT),
    )
    .select_from(token_table.join(grant_table))
    .where(token_table.c.digest == sa.bindparam("access"))
)


def _revoke(grant: sa.ColumnElement[bool]) -> sa.Update:
    # No token outlives its grant, so a grant that has expired has nothing left to end.
    living = (grant_table.c.revoked.is_(None), grant_table.c.refresh_expires > sa.bindparam("now"))
    return grant_table.update().where(grant, *living).values(revoked=sa.bindparam("now"))


_REVOKE = {
    "access": _revoke(
        grant_table.c.id
        == sa.select(token_table.c.grant_id)
        .where(token_table.c.digest == sa.bindparam("token_digest"))
        .scalar_subquery()
    ),
    "refresh": _revoke(
        sa.or_(
            grant_table.c.refresh_digest == sa.bindparam("token_digest"),
            grant_table.c.family == sa.bindparam("token_family"),
        )
    ),
}

_source, _exchanged = grant_table.alias("source"), grant_table.alias("exchanged")
_ENDED_NOW = sa.select(_source.c.id).where(_source.c.revoked == sa.bindparam("now"))
# A token from an exchange is not exchanged again, so this is all that came of the grants that end now. Each half finds
# it by an index.
_END_EXCHANGED = _revoke(
    grant_table.c.id.in_(
        sa.union(
            *(
                sa.select(_exchanged.c.id).where(_exchanged.c[name].in_(_ENDED_NOW))
                for name in ("source_id", "actor_source_id")
            )
        )
    )
)

_END = {party: _revoke(grant_table.c[f"{party}_id"] == sa.bindparam("party")) for party in get_args(Party)}

"""With which keys are JWTs signed, and whose signature is this (RFC 7515, 7517, 7518)?

A new key stands in the key set for as long as that may be cached, before it signs. Its private half is deleted when
another one signs; its public half stays while a row is left of any token that it may have signed (decision 0117).
"""

import re
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import msgspec
import sqlalchemy as sa
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, RSAKey
from sqlalchemy.engine import Connection, Engine

from muniment.database.audit import SYSTEM, acting
from muniment.database.connections import PreparedStatement, directory_tables, required, required_columns
from muniment.directory import audit
from muniment.directory.refusals import UnparseableToken
from muniment.ground.clock import SECOND, Instant

Algorithm = Literal["RS256", "ES256"]
_Key: TypeAlias = RSAKey | ECKey

CACHED_SECONDS = 900
"""So long may a consumer remember the key set."""

LONGEST_SECONDS = 3600
"""So long does a signed token live at most."""

ACCESS_TOKEN = "at+jwt"  # noqa: S105 - the name of a kind
"""The ``typ`` of an access token (RFC 9068 2.1): no other JWT of ours is taken for one."""

LONGEST_JWT = 8192

_KID = re.compile(r"[A-Za-z0-9_-]{1,64}")

_keys = sa.Table(
    "signing_keys",
    directory_tables,
    sa.Column("kid", sa.String(64), primary_key=True),
    required("algorithm", sa.String(10)),
    required("public", sa.Text),
    sa.Column("private", sa.LargeBinary),
    *required_columns(sa.BigInteger, "created", "signs_from"),
    sa.Column("retired", sa.BigInteger),
)

_read: weakref.WeakKeyDictionary[Engine, dict[tuple[str, bool], _Key]] = weakref.WeakKeyDictionary()
"""By key id, and whether the private half is there: what is under a key id never changes."""


class NewKey(msgspec.Struct, frozen=True):
    """A key that is in no database yet."""

    kid: str
    algorithm: Algorithm
    public: str
    private: bytes


class PublishedKey(msgspec.Struct, frozen=True):
    """``retired`` is when another key began, or begins, to sign in its place. One with ``signs_from`` no earlier than
    that never signs, or must not be trusted: it stands in no key set.
    """

    kid: str
    algorithm: Algorithm
    public: str
    created: Instant
    signs_from: Instant
    retired: Instant | None


def generate(algorithm: Algorithm) -> NewKey:
    """A tenth of a second of the processor for RS256: not in a transaction, where that can be."""
    key: _Key = (
        RSAKey.generate_key(2048, private=True) if algorithm == "RS256" else ECKey.generate_key("P-256", private=True)
    )
    public = msgspec.json.encode(key.as_dict(private=False)).decode()
    return NewKey(key.thumbprint(), algorithm, public, key.as_der(private=True))


def missing(cx: Connection) -> list[Algorithm]:
    """The algorithms for which no key has been made yet."""
    made = set(cx.scalars(sa.select(_keys.c.algorithm)))
    return [algorithm for algorithm in get_args(Algorithm) if algorithm not in made]


def add_missing(cx: Connection, keys: Sequence[NewKey], now: Instant) -> None:
    """The first key of an algorithm signs at once. Nothing happens if there is one by now."""
    lacking = missing(cx)
    # Nobody asked for it: a request that needs a key finds none.
    with acting(SYSTEM, lambda: now):
        for key in keys:
            if key.algorithm in lacking:
                _add(cx, key, now, now)


def rotate(cx: Connection, keys: Sequence[NewKey], now: Instant, *, at_once: bool = False) -> list[PublishedKey]:
    """Each new key signs from when the key set that is cached anywhere has it, or ``at_once``; then the former keys of
    its algorithm are retired. ``at_once`` they also leave the key set, those that were retired before as well: whoever
    has one in the wrong hands signs what others would take. Returns the new keys.
    """
    for key in keys:
        former = cx.scalar(sa.select(sa.func.count()).where(_keys.c.algorithm == key.algorithm).select_from(_keys))
        begins = now if at_once or not former else now + CACHED_SECONDS * SECOND
        same = sa.and_(_keys.c.algorithm == key.algorithm, sa.or_(_keys.c.retired.is_(None), _keys.c.retired > begins))
        cx.execute(_keys.update().where(same).values(retired=begins))
        if at_once:
            hidden = {"private": None, "signs_from": now, "retired": now}
            cx.execute(_keys.update().where(_keys.c.algorithm == key.algorithm).values(hidden))
        _add(cx, key, begins, now)
    return [each for each in every(cx) if each.kid in {key.kid for key in keys}]


def every(cx: Connection) -> list[PublishedKey]:
    """The oldest first."""
    return [PublishedKey(*row) for row in cx.execute(_SHOWN.order_by(_keys.c.created, _keys.c.algorithm, _keys.c.kid))]


def key_set(cx: Connection, now: Instant) -> dict[str, list[dict[str, Any]]]:
    """As a JSON Web Key Set (RFC 7517 5), with the field's ``value``, a PEM: keys that sign or will, and those whose
    tokens may still live.
    """
    shown = [
        key
        for key in every(cx)
        if key.retired is None or (key.signs_from < key.retired and now < key.retired + LONGEST_SECONDS * SECOND)
    ]
    return {
        "keys": [
            {
                **msgspec.json.decode(key.public),
                "kid": key.kid,
                "use": "sig",
                "alg": key.algorithm,
                "value": _import(key.algorithm, key.public).as_pem(private=False).decode(),
            }
            for key in shown
        ]
    }


class Signer(NamedTuple):
    """A key that signs now."""

    kid: str
    algorithm: Algorithm
    key: _Key

    def sign(self, claims: Mapping[str, Any], typ: str) -> str:
        """A JWS in compact form. A millisecond of the processor for RS256: not in a transaction."""
        header = {"alg": self.algorithm, "typ": typ, "kid": self.kid}
        return jws.serialize_compact(header, msgspec.json.encode(claims), self.key, algorithms=[self.algorithm])


class UnsignedToken(NamedTuple):
    """What a JWT will say, and the key that will sign it."""

    signer: Signer
    typ: str
    claims: Mapping[str, Any]

    def sign(self, more: Mapping[str, Any] = {}) -> str:
        return self.signer.sign({**self.claims, **more}, self.typ)


def signer(cx: Connection, now: Instant, algorithm: Algorithm = "RS256") -> Signer:
    """The key that signs now, or first, should the clock have gone back. Makes the first key if there is none."""
    row = _SIGNING.first(cx, algorithm=algorithm, now=now) or _FIRST.first(cx, algorithm=algorithm)
    if row is None:
        add_missing(cx, [generate(algorithm)], now)
        return signer(cx, now, algorithm)
    kid: str = row[0]
    keys = _read.setdefault(cx.engine, {})
    key = keys.get((kid, True))
    if key is None:
        private = cx.scalar(sa.select(_keys.c.private).where(_keys.c.kid == kid))
        if private is None:  # another key signs by now
            return signer(cx, now, algorithm)
        key = keys[kid, True] = _import(algorithm, bytes(private))
    return Signer(kid, algorithm, key)


def read(cx: Connection, text: str, typ: str) -> dict[str, Any]:
    """The claims of a JWT that this directory signed, whenever that was; whether it lives is not asked.

    Raises UnparseableToken: for one that is too large or nested, has another ``typ``, a header of which we write none,
    an unknown key, another algorithm than its key, or a wrong signature.
    """
    try:
        return _read_signed(cx, text, typ)
    except (JoseError, ValueError, KeyError, TypeError, msgspec.DecodeError) as error:
        raise UnparseableToken("The token cannot be parsed.") from error


def looks_signed(text: str) -> bool:
    """Whether it has the three parts of a JWS, which no opaque token has."""
    return text.count(".") == 2


def _read_signed(cx: Connection, text: str, typ: str) -> dict[str, Any]:
    if len(text) > LONGEST_JWT or not looks_signed(text) or not text.isascii():
        raise ValueError
    header = jws.extract_compact(text.encode()).headers()
    if header.keys() != {"alg", "typ", "kid"} or header["typ"] != typ or not _KID.fullmatch(header["kid"]):
        raise ValueError
    row = _PUBLIC.first(cx, kid=header["kid"])
    if row is None or row[0] != header["alg"]:
        raise ValueError
    keys = _read.setdefault(cx.engine, {})
    key = keys.get((header["kid"], False))
    if key is None:
        key = keys[header["kid"], False] = _import(row[0], row[1])
    signed = jws.deserialize_compact(text, key, algorithms=[row[0]])
    claims: dict[str, Any] = msgspec.json.decode(signed.payload, type=dict)
    return claims


def purge(cx: Connection, now: Instant, oldest_expiry: Instant | None) -> None:
    """``oldest_expiry`` is that of the access token which expires, or expired, first of all that are stored.

    What a retired key signed expired ``LONGEST_SECONDS`` after it was retired, at the latest.
    """
    cx.execute(_keys.update().where(_keys.c.retired <= now, _keys.c.private.is_not(None)).values(private=None))
    last = (now if oldest_expiry is None else min(now, oldest_expiry)) - LONGEST_SECONDS * SECOND
    cx.execute(_keys.delete().where(_keys.c.retired < last))


def _add(cx: Connection, key: NewKey, signs_from: Instant, now: Instant) -> None:
    row = msgspec.structs.asdict(key) | {"created": now, "signs_from": signs_from, "retired": None}
    cx.execute(_keys.insert(), row)
    audit.record(cx, "key made", audit.Target("key", key.kid), None, {"algorithm": key.algorithm})


def _import(algorithm: str, material: str | bytes) -> _Key:
    """``material`` is a public JWK as JSON, or a private key as DER."""
    kind = RSAKey if algorithm == "RS256" else ECKey
    return kind.import_key(msgspec.json.decode(material) if isinstance(material, str) else material)


_SHOWN = sa.select(*_keys.c[PublishedKey.__struct_fields__])
_WITH_PRIVATE = sa.select(_keys.c.kid).where(
    _keys.c.algorithm == sa.bindparam("algorithm"), _keys.c.private.is_not(None)
)
_SIGNING = PreparedStatement(
    _WITH_PRIVATE.where(_keys.c.signs_from <= sa.bindparam("now", type_=sa.BigInteger))
    .order_by(_keys.c.signs_from.desc(), _keys.c.kid)
    .limit(1)
)
_FIRST = PreparedStatement(_WITH_PRIVATE.order_by(_keys.c.signs_from, _keys.c.kid).limit(1))
_PUBLIC = PreparedStatement(sa.select(*_keys.c["algorithm", "public"]).where(_keys.c.kid == sa.bindparam("kid")))

"""The repository's secret keys, and what is made with them: numbers nobody can count with, texts nobody else can read.

A *scrambled* number stands for a counter: whoever sees two of them cannot tell which came first, or how many lie
between. A *sealed* text goes out to a caller and comes back: they can neither read it, change it nor compare two.
"""

import base64
import binascii
import hashlib
import secrets
import weakref
from functools import lru_cache

import sqlalchemy as sa
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from sqlalchemy.engine import Connection, Engine

from muniment.db import PreparedStatement, repository_tables

OBJECTS, ACLS, SEALS = "objects", "acls", "seals"
"""What a key is for. The migrations make the keys: no decision ever does, so that a key once read stays true."""

_keys = sa.Table(
    "repository_keys",
    repository_tables,
    sa.Column("purpose", sa.String(20), primary_key=True),
    sa.Column("key", sa.LargeBinary, nullable=False),
)

BITS = 56
"""A scrambled number has so many bits: 14 hexadecimal digits."""

FORMER = 1 << 48
"""Below this lie the numbers that ids were made of before they were scrambled; none of the new ones does.

They were the repository's number in 6 digits, then the counter in 8. Repositories are numbered from 1 on, and no
installation has 65,536 of them: so the first two of the 14 digits were always 00.
"""

_ROUNDS = 10
_NONCE_BYTES = 12
_LONGEST_SEALED = 4000

_KEY = PreparedStatement(sa.select(_keys.c.key).where(_keys.c.purpose == sa.bindparam("purpose")))
_read_keys: weakref.WeakKeyDictionary[Engine, dict[str, bytes]] = weakref.WeakKeyDictionary()


class BadSeal(Exception):
    """The text is none of ours, or was sealed for something else."""


class Permutation:
    """A keyed bijection of the whole numbers of so many bits (an even count, at most 64) onto themselves.

    A balanced Feistel network whose rounds are keyed BLAKE2b: a bijection whatever the rounds compute, and with ten of
    them (as NIST SP 800-38G takes for FF1) not to be told from a random one by whoever has no key.
    """

    def __init__(self, key: bytes, bits: int) -> None:
        self._half = bits // 2
        self._mask = (1 << self._half) - 1
        # The key is taken in once: a copy of the state costs less than the key.
        self._rounds = [hashlib.blake2b(bytes([number]), digest_size=4, key=key) for number in range(_ROUNDS)]

    def __call__(self, number: int) -> int:
        """Give the number that stands for this one."""
        left, right = number >> self._half, number & self._mask
        for begun in self._rounds:
            hashed = begun.copy()
            hashed.update(right.to_bytes(4, "big"))
            left, right = right, left ^ (int.from_bytes(hashed.digest(), "big") & self._mask)
        return left << self._half | right


class Seal:
    """Seals texts for callers, and opens what they send back.

    AES-SIV with a fresh nonce (RFC 5297 section 3): should two nonces ever be equal, only equal texts show. What a
    sealed text is *bound* to is not in it, and must be the same when it is opened.
    """

    def __init__(self, key: bytes) -> None:
        self._cipher = AESSIV(hashlib.blake2b(b"seal", digest_size=64, key=key).digest())

    def seal(self, plain: bytes, *bound: str) -> str:
        """Write these bytes as a text of letters, digits, ``-`` and ``_``, another one each time."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return base64.urlsafe_b64encode(nonce + self._cipher.encrypt(plain, _bound(bound, nonce))).decode().rstrip("=")

    def open(self, sealed: str, *bound: str) -> bytes:
        """Read what ``seal`` wrote, bound to the same. Raises BadSeal."""
        if not sealed.isascii() or len(sealed) > _LONGEST_SEALED:
            raise BadSeal
        try:
            raw = base64.b64decode(sealed + "=" * (-len(sealed) % 4), altchars=b"-_", validate=True)
            nonce = raw[:_NONCE_BYTES]
            return self._cipher.decrypt(raw[_NONCE_BYTES:], _bound(bound, nonce))
        except (binascii.Error, InvalidTag, ValueError) as error:
            raise BadSeal from error


def scramble(cx: Connection, purpose: str, counter: int) -> str:
    """Spell the 14 hexadecimal digits that stand for a counter, from 0 on; they never begin with 00.

    The permutation is walked until it leaves the former numbers, which keeps it a bijection of all others.
    """
    return outside_the_former(_permutation(key(cx, purpose)), counter)


def outside_the_former(permutation: Permutation, counter: int) -> str:
    """Spell the number that stands for a counter as ``scrambled`` does."""
    number = permutation(FORMER + counter)
    while number < FORMER:
        number = permutation(number)
    return f"{number:014x}"


def seal(cx: Connection) -> Seal:
    """Give what seals this repository half's texts, whichever process opens them."""
    return _seal(key(cx, SEALS))


def key(cx: Connection, purpose: str) -> bytes:
    """Give the 32-byte key kept for a purpose. It never changes, and is remembered for the engine's life."""
    known = _read_keys.setdefault(cx.engine, {})
    if purpose not in known:
        row = _KEY.first(cx, purpose=purpose)
        if row is None:
            raise LookupError(f"there is no key for {purpose}")
        known[purpose] = bytes(row[0])
    return known[purpose]


@lru_cache(maxsize=16)
def _permutation(secret: bytes) -> Permutation:
    return Permutation(secret, BITS)


@lru_cache(maxsize=16)
def _seal(secret: bytes) -> Seal:
    return Seal(secret)


def _bound(bound: tuple[str, ...], nonce: bytes) -> list[bytes]:
    # Each is a component of its own, so that no two lists are read as one; a component may not be empty.
    return [b"=" + part.encode() for part in bound] + [nonce]

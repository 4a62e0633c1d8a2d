"""The repository's secret keys, and the scrambled numbers and sealed texts that are made with them.

A *scrambled* number stands for a counter: two of them tell neither order nor distance. A *sealed* text goes to a caller
and back, who can neither read, change nor compare it.

Source: docs/decisions/0031.
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

from muniment.database.connections import PreparedStatement, repository_tables

OBJECTS, ACLS, SEALS = "objects", "acls", "seals"
"""Only migrations make keys, so a key that was read once stays valid."""

_keys = sa.Table(
    "repository_keys",
    repository_tables,
    sa.Column("purpose", sa.String(20), primary_key=True),
    sa.Column("key", sa.LargeBinary, nullable=False),
)

BITS = 56

FORMER = 1 << 48
"""Ids of the former spelling, which exports carry, have numbers below this; scrambled ids never do.

They were the repository's number, below 65,536, in 6 digits, and the counter in 8: so the first two were always 00.
"""

_ROUNDS = 10
_NONCE_BYTES = 12
_LONGEST_SEALED = 8000

_KEY = PreparedStatement(sa.select(_keys.c.key).where(_keys.c.purpose == sa.bindparam("purpose")))
_read_keys: weakref.WeakKeyDictionary[Engine, dict[str, bytes]] = weakref.WeakKeyDictionary()


class BadSeal(Exception):
    """The text was not sealed with our key, or not with this binding."""


class Permutation:
    """A keyed bijection of the whole numbers of ``bits`` bits (an even count, at most 64) onto themselves. It is a
    balanced Feistel network with keyed BLAKE2b as its round function, and a bijection whatever that is.

    With ten rounds, as in FF1 (NIST SP 800-38G), nobody without the key can tell it from a random one.
    """

    def __init__(self, key: bytes, bits: int) -> None:
        self._half = bits // 2
        self._mask = (1 << self._half) - 1
        # The key is hashed once for each round: copying the state is cheaper than hashing the key again.
        self._rounds = [hashlib.blake2b(bytes([number]), digest_size=4, key=key) for number in range(_ROUNDS)]

    def __call__(self, number: int) -> int:
        left_half, right_half = number >> self._half, number & self._mask
        for keyed_round in self._rounds:
            round_hash = keyed_round.copy()
            round_hash.update(right_half.to_bytes(4, "big"))
            left_half, right_half = right_half, left_half ^ (int.from_bytes(round_hash.digest(), "big") & self._mask)
        return left_half << self._half | right_half


class Seal:
    """Seals texts for callers, and opens what they send back.

    AES-SIV with a fresh nonce (RFC 5297 section 3): even equal nonces would only show whether two texts are equal. A
    sealed text opens only with the texts to which it is *bound*, but does not contain them.
    """

    def __init__(self, key: bytes) -> None:
        self._cipher = AESSIV(hashlib.blake2b(b"seal", digest_size=64, key=key).digest())

    def seal(self, plain: bytes, *binding: str) -> str:
        """Return letters, digits, ``-`` and ``_``, different at each call."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return (
            base64.urlsafe_b64encode(nonce + self._cipher.encrypt(plain, _components(binding, nonce)))
            .decode()
            .rstrip("=")
        )

    def open(self, sealed_text: str, *binding: str) -> bytes:
        """Open with the same binding.

        Raises BadSeal.
        """
        if not sealed_text.isascii() or len(sealed_text) > _LONGEST_SEALED:
            raise BadSeal
        try:
            raw = base64.b64decode(sealed_text + "=" * (-len(sealed_text) % 4), altchars=b"-_", validate=True)
            nonce = raw[:_NONCE_BYTES]
            return self._cipher.decrypt(raw[_NONCE_BYTES:], _components(binding, nonce))
        except (binascii.Error, InvalidTag, ValueError) as error:
            raise BadSeal from error


def scramble(cx: Connection, purpose: str, counter: int) -> str:
    """Return 14 hexadecimal digits for a counter from 0 on; they never begin with 00.

    The permutation is repeated for a number of the former spelling. No two counters get the same digits.
    """
    return outside_the_former(_permutation(key(cx, purpose)), counter)


def outside_the_former(permutation: Permutation, counter: int) -> str:
    number = permutation(FORMER + counter)
    while number < FORMER:
        number = permutation(number)
    return f"{number:014x}"


def seal(cx: Connection) -> Seal:
    """Any process can open what another has sealed."""
    return _seal(key(cx, SEALS))


def known_seal(engine: Engine) -> Seal | None:
    """Return what ``seal`` has returned in this process, without a read."""
    secret = _read_keys.get(engine, {}).get(SEALS)
    return None if secret is None else _seal(secret)


def key(cx: Connection, purpose: str) -> bytes:
    """Return 32 bytes, which never change, so they are remembered as long as the engine lives.

    Raises LookupError if a migration is missing.
    """
    keys_by_purpose = _read_keys.setdefault(cx.engine, {})
    if purpose not in keys_by_purpose:
        row = _KEY.first(cx, purpose=purpose)
        if row is None:
            raise LookupError(f"there is no key for {purpose}")
        keys_by_purpose[purpose] = bytes(row[0])
    return keys_by_purpose[purpose]


@lru_cache(maxsize=16)
def _permutation(secret: bytes) -> Permutation:
    return Permutation(secret, BITS)


@lru_cache(maxsize=16)
def _seal(secret: bytes) -> Seal:
    return Seal(secret)


def _components(binding: tuple[str, ...], nonce: bytes) -> list[bytes]:
    # Each text is a component of its own, so that two different lists never look the same. No component may be empty.
    return [b"=" + part.encode() for part in binding] + [nonce]

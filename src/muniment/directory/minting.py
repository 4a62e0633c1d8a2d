"""Make random values that this directory knows again without its database, and tell them from any other text.

A value is 32 random bytes and an 8-byte keyed check (BLAKE2b, RFC 7693) over its kind and these, in base64url without
padding. Only the random bytes' SHA-256 digest is stored. A value may have a successor, of which this directory alone
knows whose it is: they share their first 16 bytes, their *family*.
"""

import base64
import hashlib
import hmac
import re
import secrets

_RANDOM = 32
_CHECK = 8
_SEAL = 32
_FAMILY = 16
# The last character holds two bits of the check and four bits of padding. The padding is zero, so that a value has one
# spelling only.
_PATTERN = re.compile(r"[A-Za-z0-9_-]{53}[AQgw]")


def mint(key: bytes, kind: str) -> tuple[str, bytes]:
    """A new value, and its digest."""
    return _spell(key, kind, secrets.token_bytes(_RANDOM))


def parse(key: bytes, kind: str, value: str) -> bytes | None:
    """The digest, or None if it is no value of this kind."""
    if not _PATTERN.fullmatch(value):
        return None
    raw = base64.urlsafe_b64decode(value + "==")
    random, check = raw[:_RANDOM], raw[_RANDOM:]
    return _digest(random) if hmac.compare_digest(check, _check(key, kind, random)) else None


def family(value: str) -> bytes:
    """The digest that a value of ours shares with its successors, and with no other value."""
    return _digest(_random(value)[:_FAMILY])


def successor(key: bytes, kind: str, value: str) -> tuple[str, bytes]:
    """Of a value of ours, always the same, with its digest. Without the key nobody can tell it."""
    random = _random(value)
    end = hashlib.blake2b(random, digest_size=_RANDOM - _FAMILY, key=key, person=b"successor").digest()
    return _spell(key, kind, random[:_FAMILY] + end)


def seal(key: bytes, kind: str, *texts: str) -> str:
    """What only this directory can write under these texts."""
    parts = [text.encode("utf-8", "surrogatepass") for text in texts]
    message = b"".join(b"%d:%s" % (len(part), part) for part in parts)
    digest = hashlib.blake2b(message, digest_size=_SEAL, key=key, person=kind.encode()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _spell(key: bytes, kind: str, random: bytes) -> tuple[str, bytes]:
    value = base64.urlsafe_b64encode(random + _check(key, kind, random))
    return value.decode().rstrip("="), _digest(random)


def _random(value: str) -> bytes:
    return base64.urlsafe_b64decode(value + "==")[:_RANDOM]


def _check(key: bytes, kind: str, random: bytes) -> bytes:
    return hashlib.blake2b(kind.encode() + b"\x00" + random, digest_size=_CHECK, key=key).digest()


def _digest(random: bytes) -> bytes:
    return hashlib.sha256(random).digest()

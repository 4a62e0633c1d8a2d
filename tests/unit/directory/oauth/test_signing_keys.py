"""Which key signs, whose signature is taken, and for how long (RFC 7515, 7517; facts 3.3, failures A13 to A15)."""

import base64
import hmac
import json
from typing import Any

import pytest
import sqlalchemy as sa
from cryptography.hazmat.primitives import serialization
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey

from muniment.database.connections import directory_tables
from muniment.directory.oauth import signing_keys
from muniment.directory.oauth.signing_keys import CACHED_SECONDS, LONGEST_SECONDS, Algorithm
from muniment.directory.refusals import UnparseableToken
from muniment.ground.clock import SECOND, Instant
from tests.office import Office, counted

CACHED, LONGEST = CACHED_SECONDS * SECOND, LONGEST_SECONDS * SECOND
KEYS = {algorithm: [signing_keys.generate(algorithm) for _ in range(3)] for algorithm in ("ES256",)}
RSA = signing_keys.generate("RS256")


def sign(office: Office, now: Instant, claims: dict[str, Any] | None = None, algorithm: Algorithm = "ES256") -> str:
    with office.db.begin() as cx:
        return signing_keys.signer(cx, now, algorithm).sign(claims or {"sub": "x"}, "at+jwt")


def read(office: Office, text: str, typ: str = "at+jwt") -> dict[str, Any]:
    with office.db.read() as cx:
        return signing_keys.read(cx, text, typ)


def kid(text: str) -> str:
    return str(json.loads(base64.urlsafe_b64decode(text.partition(".")[0] + "=="))["kid"])


def shown(office: Office, now: Instant) -> list[str]:
    with office.db.read() as cx:
        return [str(key["kid"]) for key in signing_keys.key_set(cx, now)["keys"]]


def purge(office: Office, now: Instant, oldest: Instant | None = None) -> None:
    with office.db.begin() as cx:
        signing_keys.purge(cx, now, oldest)


@pytest.fixture
def keyed(office: Office, now: Instant) -> Office:
    with office.db.begin() as cx:
        signing_keys.add_missing(cx, [RSA, KEYS["ES256"][0]], now)
        signing_keys.add_missing(cx, [KEYS["ES256"][1]], now)
    return office


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
def test_what_it_signs_others_verify_by_its_key_set(keyed: Office, now: Instant, algorithm: Algorithm) -> None:
    text = sign(keyed, now, {"sub": "ä", "aud": "y"}, algorithm)
    with keyed.db.read() as cx:
        published = signing_keys.key_set(cx, now)
    verified = jwt.decode(text, KeySet.import_key_set(published), algorithms=[algorithm])  # type: ignore[arg-type]
    assert verified.claims == {"sub": "ä", "aud": "y"} == read(keyed, text)
    assert verified.header == {"alg": algorithm, "typ": "at+jwt", "kid": kid(text)}
    for key in published["keys"]:
        assert {"kty", "kid", "use", "alg", "value"} <= key.keys()
        assert key.keys().isdisjoint({"d", "p", "q", "dp", "dq", "qi"})
        serialization.load_pem_public_key(key["value"].encode())


def test_the_first_key_is_made_when_something_is_to_be_signed(office: Office, now: Instant) -> None:
    assert shown(office, now) == []
    assert shown(office, now) == [] != [kid(sign(office, now))] == shown(office, now)


def test_the_key_that_is_there_signs_also_when_the_clock_goes_back(keyed: Office, now: Instant) -> None:
    old, new = KEYS["ES256"][0], KEYS["ES256"][1]
    before = now - 60 * SECOND
    assert kid(sign(keyed, before)) == old.kid
    with keyed.db.begin() as cx:
        signing_keys.rotate(cx, [new], now)
    assert kid(sign(keyed, before)) == old.kid
    purge(keyed, now + CACHED)
    assert kid(sign(keyed, now)) == new.kid
    assert {old.kid, new.kid} <= set(shown(keyed, now))


def test_a_new_key_stands_in_the_set_before_it_signs_and_the_former_one_while_its_tokens_live(
    keyed: Office, now: Instant
) -> None:
    old, new = KEYS["ES256"][0], KEYS["ES256"][1]
    before = sign(keyed, now)
    with keyed.db.begin() as cx:
        assert [key.kid for key in signing_keys.rotate(cx, [new], now)] == [new.kid]
    assert {old.kid, new.kid} <= set(shown(keyed, now))
    assert kid(sign(keyed, now + CACHED - 1)) == old.kid
    assert kid(sign(keyed, now + CACHED)) == new.kid
    last = now + CACHED + LONGEST
    purge(keyed, now + CACHED)
    assert old.kid in shown(keyed, last - 1)
    assert old.kid not in shown(keyed, last)
    assert kid(sign(keyed, last)) == new.kid
    purge(keyed, last + 1, oldest=last - LONGEST)
    assert read(keyed, before) == {"sub": "x"}, "a row is left of a token that it may have signed"
    purge(keyed, last + 1)
    with pytest.raises(UnparseableToken):
        read(keyed, before)


def test_two_rotations_in_a_row_leave_one_key_that_signs(keyed: Office, now: Instant) -> None:
    with keyed.db.begin() as cx:
        signing_keys.rotate(cx, [KEYS["ES256"][1]], now)
        signing_keys.rotate(cx, [KEYS["ES256"][2]], now + SECOND)
    assert kid(sign(keyed, now + CACHED)) == KEYS["ES256"][1].kid
    assert kid(sign(keyed, now + CACHED + SECOND)) == KEYS["ES256"][2].kid


def test_at_once_the_former_key_signs_no_more_and_its_private_half_is_gone(keyed: Office, now: Instant) -> None:
    before = sign(keyed, now)
    with keyed.db.begin() as cx:
        signing_keys.rotate(cx, [KEYS["ES256"][1]], now, at_once=True)
    assert kid(sign(keyed, now)) == KEYS["ES256"][1].kid
    table = directory_tables.tables["signing_keys"]
    with keyed.db.read() as cx:
        assert cx.scalar(sa.select(table.c.private).where(table.c.kid == KEYS["ES256"][0].kid)) is None
    assert read(keyed, before) == {"sub": "x"}


def test_at_once_no_key_set_has_a_former_key_by_which_a_stranger_could_sign(keyed: Office, now: Instant) -> None:
    """failures A15"""
    rsa, (first, second, third) = RSA.kid, KEYS["ES256"]
    before = sign(keyed, now)
    with keyed.db.begin() as cx:
        signing_keys.rotate(cx, [second], now)
    later = now + CACHED
    assert {rsa, first.kid, second.kid} == set(shown(keyed, later)), "retired by schedule, and still shown"
    with keyed.db.begin() as cx:
        signing_keys.rotate(cx, [third], later, at_once=True)
    assert {rsa, third.kid} == set(shown(keyed, later)) == set(shown(keyed, later + LONGEST))
    purge(keyed, later + 1, oldest=now + SECOND)
    assert read(keyed, before) == {"sub": "x"}, "it ended, which we go on to say"


def test_a_key_that_never_signed_leaves_the_key_set_at_once(keyed: Office, now: Instant) -> None:
    _, second, third = KEYS["ES256"]
    with keyed.db.begin() as cx:
        signing_keys.rotate(cx, [second], now)
        signing_keys.rotate(cx, [third], now + SECOND, at_once=True)
    assert {RSA.kid, third.kid} == set(shown(keyed, now + SECOND))
    assert kid(sign(keyed, now + CACHED)) == third.kid


def forged(header: dict[str, Any], signature: str = "") -> str:
    parts = [json.dumps(header), json.dumps({"sub": "admin"})]
    return ".".join([*(base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts), signature])


def test_no_forged_token_is_parsed(keyed: Office, now: Instant) -> None:
    """failures A13, failures A14"""
    good, own = sign(keyed, now), kid(sign(keyed, now))
    pem = RSAKey.import_key(json.loads(RSA.public)).as_pem(private=False)
    unsigned = forged({"alg": "HS256", "typ": "at+jwt", "kid": RSA.kid})[:-1]
    mac = base64.urlsafe_b64encode(hmac.digest(pem, unsigned.encode(), "sha256")).decode().rstrip("=")
    confused = f"{unsigned}.{mac}"
    stranger = RSAKey.generate_key(2048)
    head, claims, signature = good.split(".")
    table = {
        "none": forged({"alg": "none", "typ": "at+jwt", "kid": own}),
        "no signature": f"{head}.{claims}.",
        "algorithm confusion": confused,
        "another algorithm than the key's": forged({"alg": "RS256", "typ": "at+jwt", "kid": own}, signature),
        "a stranger's key": jwt.encode({"alg": "RS256", "typ": "at+jwt", "kid": RSA.kid}, {"sub": "x"}, stranger),
        "a key in the header": forged({"alg": "ES256", "typ": "at+jwt", "kid": own, "jwk": {}}, signature),
        "a key at an address": forged({"alg": "ES256", "typ": "at+jwt", "kid": own, "jku": "https://x"}, signature),
        "crit": forged({"alg": "ES256", "typ": "at+jwt", "kid": own, "crit": ["b64"], "b64": False}, signature),
        "an unknown kid": forged({"alg": "ES256", "typ": "at+jwt", "kid": "../../etc/passwd"}, signature),
        "a kid that is no text": forged({"alg": "ES256", "typ": "at+jwt", "kid": {"$ne": 1}}, signature),
        "SQL in the kid": forged({"alg": "ES256", "typ": "at+jwt", "kid": f"{own}' OR '1'='1"}, signature),
        "a long kid": forged({"alg": "ES256", "typ": "at+jwt", "kid": own + "x" * 100}, signature),
        "other claims": f"{head}.{forged({}).split('.')[1]}.{signature}",
        "nested": forged({"alg": "ES256", "typ": "at+jwt", "kid": own, "cty": "JWT"}, signature),
        "encrypted": good + ".x.y",
        "oversized": good + "A" * signing_keys.LONGEST_JWT,
        "no base64": "ä.ö.ü",
        "empty": "..",
    }
    for what, text in table.items():
        with pytest.raises(UnparseableToken):
            pytest.fail(f"{what}: {read(keyed, text)}")
    with pytest.raises(UnparseableToken):
        read(keyed, good, typ="JWT")
    assert read(keyed, good)


@pytest.mark.parametrize("kid", ["\0", "a\0", "\ud800", "ä", "", "a" * 65, "a b", "a\n"])
def test_a_kid_that_no_key_has_is_not_looked_up(keyed: Office, kid: str) -> None:
    """PostgreSQL takes no text with NUL or half of a surrogate pair (failures A13)."""
    text = forged({"alg": "ES256", "typ": "at+jwt", "kid": kid}, "AAAA")
    with counted(keyed.db) as sent, pytest.raises(UnparseableToken):
        read(keyed, text)
    assert sent == []

"""Make the certificates that need no operator: a local CA, and the listener's leaf (RFC 5280)."""

import datetime as dt
import ipaddress
import math
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from muniment.ground import clock, disk, locks
from muniment.ground.clock import Instant

_CA_DAYS = 3650
_LEAF_DAYS = 397
RENEW_DAYS = 30
"""Days left at which a certificate is renewed at the next start."""

_LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
_WILDCARD_ADDRESSES = ("0.0.0.0", "::")  # noqa: S104 - nobody can call these addresses, so no certificate names them


class CertificateProblem(ValueError):
    """The message says why and what to do."""


class Certificates(NamedTuple):
    """The CA's certificate, which callers trust, and the listener's certificate with its key."""

    ca_file: Path
    cert_file: Path
    key_file: Path


def ensure(folder: Path, names: Sequence[str], now: Instant) -> Certificates:
    """Folders get mode 0700, keys 0600. Several processes may call this at one time.

    The leaf lasts 397 days, but never longer than the CA. It names ``names`` (without 0.0.0.0 and ::), localhost,
    127.0.0.1 and ::1, and is also renewed when these or the CA change, or the key file has another key. Raises
    CertificateProblem.
    """
    moment = _to_moment(now)
    general_names = _general_names(names)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    files = Certificates(folder / "ca.pem", folder / "server.pem", folder / "server-key.pem")
    with locks.hold(folder / ".lock"):
        authority = _read_certificate(files.ca_file)
        if authority is None or _days_left(authority, moment) < RENEW_DAYS:
            authority = _make_authority(folder, files, moment)
        if _leaf_is_due(files, authority, general_names, moment):
            _make_leaf(folder, files, authority, general_names, moment)
    return files


def load_pair(context: ssl.SSLContext, cert_file: Path, key_file: Path) -> None:
    """Raises CertificateProblem, OSError."""
    try:
        # Without this password, OpenSSL would ask a terminal for the password of an encrypted key, in every process.
        context.load_cert_chain(cert_file, key_file, password=b"")
    except ssl.SSLError as error:
        raise CertificateProblem(
            f"{cert_file} and {key_file} cannot be used ({error.reason or error}): name a certificate chain and "
            "its own unencrypted key, both PEM."
        ) from error


def days_left(cert_file: Path, now: Instant) -> int | None:
    """Whole days for which a chain's first certificate is valid: negative once it has expired.

    None when the file is missing, unreadable or without one.
    """
    try:
        certificate = _read_certificate(cert_file)
    except (CertificateProblem, OSError):
        return None
    return None if certificate is None else math.floor(_days_left(certificate, _to_moment(now)))


def _to_moment(now: Instant) -> dt.datetime:
    return clock.to_datetime(now).replace(microsecond=0)


def _general_names(names: Sequence[str]) -> list[x509.GeneralName]:
    by_text: dict[str, x509.GeneralName] = {}
    for name in (*_LOCAL_NAMES, *names):
        text = name.strip().strip("[]").rstrip(".").lower()
        if not text or text in _WILDCARD_ADDRESSES:
            continue
        try:
            by_text[text] = x509.IPAddress(ipaddress.ip_address(text))
        except ValueError:
            by_text[text] = x509.DNSName(_ascii(text))
    return list(by_text.values())


def _ascii(name: str) -> str:
    try:
        ascii_name = name.encode("idna").decode("ascii")
    except UnicodeError as error:
        raise CertificateProblem(f"{name!r} is no host name or address a certificate can hold.") from error
    if not all(character.isalnum() or character in "-._*" for character in ascii_name):
        raise CertificateProblem(f"{name!r} is no host name or address a certificate can hold.")
    return ascii_name


def _make_authority(folder: Path, files: Certificates, moment: dt.datetime) -> x509.Certificate:
    key = ec.generate_private_key(ec.SECP256R1())
    # Two data folders on one machine need CAs with different names, because a caller may trust both.
    number = x509.random_serial_number()
    name = _name(f"Muniment local CA {number & 0xFFFFFFFF:08x}")
    builder = (
        _builder(name, name, key.public_key(), number, moment, moment + dt.timedelta(days=_CA_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
    )
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return _sign(builder, key, folder / "ca-key.pem", files.ca_file, key, identifier)


def _make_leaf(
    folder: Path,
    files: Certificates,
    authority: x509.Certificate,
    general_names: list[x509.GeneralName],
    moment: dt.datetime,
) -> None:
    authority_key = _read_key(folder / "ca-key.pem")
    if authority_key is None or authority_key.public_key() != authority.public_key():
        raise CertificateProblem(
            f"{folder / 'ca-key.pem'} is not the key of {files.ca_file}: put the right key back, "
            "or remove both so that a new CA is made (callers must then trust the new one)."
        )
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("Muniment server")
    until = min(moment + dt.timedelta(days=_LEAF_DAYS), authority.not_valid_after_utc)
    try:
        identifier = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:  # an operator's CA may have none
        identifier = x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key())
    builder = (
        _builder(name, authority.subject, key.public_key(), x509.random_serial_number(), moment, until)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(general_names), critical=False)
    )
    _sign(builder, key, files.key_file, files.cert_file, authority_key, identifier)


def _name(common_name: str) -> x509.Name:
    names = {NameOID.ORGANIZATION_NAME: "Muniment", NameOID.COMMON_NAME: common_name}
    return x509.Name([x509.NameAttribute(*each) for each in names.items()])


def _sign(
    builder: x509.CertificateBuilder,
    key: ec.EllipticCurvePrivateKey,
    key_file: Path,
    cert_file: Path,
    authority_key: ec.EllipticCurvePrivateKey,
    authority_identifier: x509.SubjectKeyIdentifier,
) -> x509.Certificate:
    authority = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(authority_identifier)
    certificate = (
        builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(authority, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    key_text = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    disk.replace(key_file, key_text)
    disk.replace(cert_file, certificate.public_bytes(pem), 0o644)
    return certificate


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    number: int,
    moment: dt.datetime,
    until: dt.datetime,
) -> x509.CertificateBuilder:
    # The certificate is valid from an hour ago, for callers whose clocks are slow.
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(number)
        .not_valid_before(moment - dt.timedelta(hours=1))
        .not_valid_after(until)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _leaf_is_due(
    files: Certificates, authority: x509.Certificate, general_names: list[x509.GeneralName], moment: dt.datetime
) -> bool:
    leaf, key = _read_certificate(files.cert_file), _read_key(files.key_file)
    if leaf is None or key is None or key.public_key() != leaf.public_key():
        return True
    try:
        leaf.verify_directly_issued_by(authority)
        leaf_names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound):
        return True
    ends_with_authority = leaf.not_valid_after_utc == authority.not_valid_after_utc
    return set(leaf_names) != set(general_names) or (_days_left(leaf, moment) < RENEW_DAYS and not ends_with_authority)


def _days_left(certificate: x509.Certificate, moment: dt.datetime) -> float:
    return (certificate.not_valid_after_utc - moment).total_seconds() / 86_400


def _read_certificate(file: Path) -> x509.Certificate | None:
    if not file.exists():
        return None
    try:
        return x509.load_pem_x509_certificate(file.read_bytes())
    except ValueError as error:
        raise CertificateProblem(f"{file} is no certificate: remove it so that a new one is made.") from error


def _read_key(file: Path) -> ec.EllipticCurvePrivateKey | None:
    if not file.exists():
        return None
    try:
        key = serialization.load_pem_private_key(file.read_bytes(), password=None)
    except (ValueError, TypeError) as error:  # TypeError: the key is encrypted
        raise CertificateProblem(f"{file} is no unencrypted private key: put one there, or remove it.") from error
    return key if isinstance(key, ec.EllipticCurvePrivateKey) else None

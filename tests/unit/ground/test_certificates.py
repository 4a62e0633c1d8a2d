"""The data folder's own CA and certificate."""

import concurrent.futures
import ssl
import stat
import time
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from muniment.ground import certificates
from muniment.ground.certificates import CertificateProblem, Certificates
from muniment.ground.clock import SECOND, Instant

DAY = 86_400 * SECOND


def _real_now() -> Instant:
    return int(time.time()) * SECOND


def _leaf(made: Certificates) -> x509.Certificate:
    return x509.load_pem_x509_certificate(made.cert_file.read_bytes())


def _shake_hands(made: Certificates, host: str, flags: ssl.VerifyFlags = ssl.VERIFY_X509_STRICT) -> None:
    context = ssl.create_default_context(cafile=str(made.ca_file))
    context.verify_flags = flags
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_side.load_cert_chain(made.cert_file, made.key_file)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    caller = context.wrap_bio(to_client, to_server, server_hostname=host)
    server = server_side.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(10):
        done = True
        for side in (caller, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                done = False
        if done:
            return
    raise AssertionError("The handshake did not end.")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1", "files.example.org", "192.0.2.7", "bücher.example"])
def test_a_strict_caller_that_trusts_the_ca_verifies_every_name(tmp_path: Path, host: str) -> None:
    names = ["files.example.org", "192.0.2.7", "bücher.example", "0.0.0.0", "::", "LOCALHOST"]
    _shake_hands(certificates.ensure(tmp_path / "tls", names, _real_now()), host)


def test_a_name_that_was_not_asked_for_is_not_verified(tmp_path: Path) -> None:
    made = certificates.ensure(tmp_path / "tls", [], _real_now())
    with pytest.raises(ssl.SSLCertVerificationError):
        _shake_hands(made, "files.example.org")


def test_a_caller_that_does_not_trust_the_ca_refuses(tmp_path: Path) -> None:
    made = certificates.ensure(tmp_path / "one", [], _real_now())
    other = certificates.ensure(tmp_path / "other", [], _real_now())
    with pytest.raises(ssl.SSLCertVerificationError):
        _shake_hands(made._replace(ca_file=other.ca_file), "localhost")


def test_keys_and_folder_are_for_the_owner_alone(tmp_path: Path, now: Instant) -> None:
    made = certificates.ensure(tmp_path / "tls", [], now)
    for key in (made.key_file, tmp_path / "tls" / "ca-key.pem"):
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "tls").stat().st_mode) == 0o700


def test_nothing_is_touched_while_nothing_is_due(tmp_path: Path, now: Instant) -> None:
    made = certificates.ensure(tmp_path, ["files.example.org"], now)
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    assert certificates.ensure(tmp_path, ["FILES.example.org."], now + 366 * DAY) == made
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before


@pytest.mark.parametrize(("days", "names"), [(368, []), (0, ["files.example.org"])])
def test_the_leaf_is_made_anew_under_the_same_ca_when_due(
    tmp_path: Path, now: Instant, days: int, names: list[str]
) -> None:
    made = certificates.ensure(tmp_path, [], now)
    ca, leaf = made.ca_file.read_bytes(), made.cert_file.read_bytes()
    certificates.ensure(tmp_path, names, now + days * DAY)
    assert made.ca_file.read_bytes() == ca
    assert made.cert_file.read_bytes() != leaf


def test_a_leaf_never_outlives_its_ca_and_an_ending_ca_is_made_anew(tmp_path: Path, now: Instant) -> None:
    made = certificates.ensure(tmp_path, [], now)
    authority = x509.load_pem_x509_certificate(made.ca_file.read_bytes())
    late = now + 3550 * DAY
    certificates.ensure(tmp_path, [], late)
    assert _leaf(made).not_valid_after_utc == authority.not_valid_after_utc
    certificates.ensure(tmp_path, [], late + 80 * DAY)
    assert x509.load_pem_x509_certificate(made.ca_file.read_bytes()) != authority
    _leaf(made).verify_directly_issued_by(x509.load_pem_x509_certificate(made.ca_file.read_bytes()))


def test_a_ca_without_its_key_serves_until_the_leaf_is_due_and_then_says_what_to_do(
    tmp_path: Path, now: Instant
) -> None:
    certificates.ensure(tmp_path, [], now)
    (tmp_path / "ca-key.pem").unlink()
    certificates.ensure(tmp_path, [], now)
    with pytest.raises(CertificateProblem, match="put the right key back"):
        certificates.ensure(tmp_path, [], now + 380 * DAY)


def _sign_bare(folder: Path, name: str, *, leaf: bool) -> None:
    """Replace a certificate by one of the same names and keys without any extension but that of a CA."""
    issuer = x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes())
    ca_key = serialization.load_pem_private_key((folder / "ca-key.pem").read_bytes(), None)
    assert isinstance(ca_key, ec.EllipticCurvePrivateKey)
    former = x509.load_pem_x509_certificate((folder / name).read_bytes())
    certificate = (
        x509.CertificateBuilder()
        .subject_name(former.subject)
        .issuer_name(issuer.subject)
        .public_key(former.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(former.not_valid_before_utc)
        .not_valid_after(former.not_valid_after_utc)
        .add_extension(x509.BasicConstraints(ca=not leaf, path_length=None), critical=True)
        .sign(ca_key, hashes.SHA256())
    )
    (folder / name).write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


def test_an_operators_ca_needs_no_key_identifier(tmp_path: Path) -> None:
    now = _real_now()
    made = certificates.ensure(tmp_path, [], now)
    _sign_bare(tmp_path, "ca.pem", leaf=False)
    certificates.ensure(tmp_path, ["files.example.org"], now)
    _shake_hands(made, "files.example.org", flags=ssl.VerifyFlags.VERIFY_DEFAULT)
    of_leaf = _leaf(made).extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
    ca = x509.load_pem_x509_certificate(made.ca_file.read_bytes())
    assert of_leaf.key_identifier == x509.SubjectKeyIdentifier.from_public_key(ca.public_key()).digest


def test_a_leaf_without_names_is_made_anew(tmp_path: Path) -> None:
    made = certificates.ensure(tmp_path, [], _real_now())
    _sign_bare(tmp_path, "server.pem", leaf=True)
    certificates.ensure(tmp_path, [], _real_now())
    _shake_hands(made, "localhost")


def test_an_encrypted_key_is_named(tmp_path: Path, now: Instant) -> None:
    made = certificates.ensure(tmp_path, [], now)
    key = serialization.load_pem_private_key(made.key_file.read_bytes(), None)
    locked = serialization.BestAvailableEncryption(b"sesame")
    text = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked)
    made.key_file.write_bytes(text)
    with pytest.raises(CertificateProblem, match=r"server-key\.pem is no unencrypted private key"):
        certificates.ensure(tmp_path, [], now)


@pytest.mark.parametrize("name", ["ca.pem", "server.pem", "server-key.pem"])
def test_a_damaged_file_is_named(tmp_path: Path, now: Instant, name: str) -> None:
    certificates.ensure(tmp_path, [], now)
    (tmp_path / name).write_text("not PEM")
    with pytest.raises(CertificateProblem, match=name):
        certificates.ensure(tmp_path, [], now)


@pytest.mark.parametrize("name", ["two words", "x" * 64 + ".example", "a..b"])
def test_what_is_no_host_name_is_refused_by_name(tmp_path: Path, now: Instant, name: str) -> None:
    with pytest.raises(CertificateProblem, match="no host name"):
        certificates.ensure(tmp_path, [name], now)


def test_many_that_start_at_once_agree_on_one_certificate(tmp_path: Path, now: Instant) -> None:
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: certificates.ensure(tmp_path / "tls", [], now), range(8)))
    assert len(set(made)) == 1
    _leaf(made[0]).verify_directly_issued_by(x509.load_pem_x509_certificate(made[0].ca_file.read_bytes()))
    assert sorted(file.name for file in (tmp_path / "tls").iterdir()) == [
        ".lock",
        "ca-key.pem",
        "ca.pem",
        "server-key.pem",
        "server.pem",
    ]


def test_days_left_are_whole_and_fewer_than_none_when_it_is_over(tmp_path: Path) -> None:
    now = _real_now()
    made = certificates.ensure(tmp_path, [], now)
    assert certificates.days_left(made.cert_file, now) == 397
    assert certificates.days_left(made.cert_file, now + 397 * DAY - SECOND) == 0
    assert certificates.days_left(made.cert_file, now + 398 * DAY) == -1
    assert certificates.days_left(tmp_path / "none.pem", now) is None
    assert certificates.days_left(made.key_file, now) is None
    assert certificates.days_left(tmp_path, now) is None, "a folder cannot be read"


def test_an_operators_pair_must_go_together_and_need_no_password(tmp_path: Path) -> None:
    one = certificates.ensure(tmp_path / "one", [], _real_now())
    two = certificates.ensure(tmp_path / "two", [], _real_now())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificates.load_pair(context, one.cert_file, one.key_file)
    key = serialization.load_pem_private_key(one.key_file.read_bytes(), None)
    locked = tmp_path / "locked.pem"
    locked.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"sesame"),
        )
    )
    for cert_file, key_file in (
        (one.cert_file, two.key_file),
        (one.key_file, one.key_file),
        (one.cert_file, locked),
    ):
        with pytest.raises(CertificateProblem, match="unencrypted"):
            certificates.load_pair(context, cert_file, key_file)

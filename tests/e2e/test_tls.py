"""What a scanner of TLS looks for: protocols, ciphers, compression, renegotiation, the chain, names, keys, dates."""

import datetime as dt
import http.server
import itertools
import re
import shutil
import socket
import ssl
import subprocess
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from muniment.ground import certificates, clock
from muniment.ground.clock import SECOND
from tests.e2e.processes import Server, initialised, muniment
from tests.servers import free_port
from tests.waiting import until

WEAK = ("RC4", "DES", "MD5", "NULL", "EXP", "ADH", "AECDH", "PSK", "SRP", "IDEA", "SEED", "ARIA", "CAMELLIA")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    data = tmp_path_factory.mktemp("tls") / "data"
    initialised(data)
    with Server(data, free_port()) as running:
        yield running


def offering(
    low: ssl.TLSVersion = ssl.TLSVersion.TLSv1,
    high: ssl.TLSVersion = ssl.TLSVersion.MAXIMUM_SUPPORTED,
    ciphers: str = "ALL:COMPLEMENTOFALL:@SECLEVEL=0",
) -> ssl.SSLContext:
    """A client that would accept nearly anything."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # it is old protocols that are asked for
        context.minimum_version, context.maximum_version = low, high
    context.set_ciphers(ciphers)
    return context


def shaken(server: Server, context: ssl.SSLContext, name: str | None = None) -> ssl.SSLSocket:
    plain = socket.create_connection(("127.0.0.1", server.port), timeout=20)
    try:
        return context.wrap_socket(plain, server_hostname=name)
    except BaseException:
        plain.close()
        raise


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
def test_old_protocols_are_refused(server: Server, version: ssl.TLSVersion) -> None:
    with pytest.raises((ssl.SSLError, ConnectionResetError)) as refused:
        shaken(server, offering(version, version)).close()
    assert "NO_PROTOCOLS" not in str(refused.value), "this client cannot ask"


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_new_protocols_are_spoken(server: Server, version: ssl.TLSVersion) -> None:
    with shaken(server, offering(version, version)) as connection:
        assert connection.version() == version.name.replace("_", ".")
        assert connection.compression() is None


def test_every_cipher_it_accepts_is_strong_and_forward_secret(server: Server) -> None:
    accepted = []
    names = {cipher["name"] for cipher in offering().get_ciphers() if cipher["protocol"] != "TLSv1.3"}
    assert len(names) > 60, "the client offers many"
    for name in sorted(names):
        context = offering(high=ssl.TLSVersion.TLSv1_2, ciphers=f"{name}:@SECLEVEL=0")
        try:
            with shaken(server, context) as connection:
                accepted.append(connection.cipher())
        except (ssl.SSLError, ConnectionResetError):
            continue
    assert accepted
    for name, _protocol, bits in filter(None, accepted):
        assert name.startswith("ECDHE"), f"{name} has no forward secrecy"
        assert re.search("GCM|CHACHA20", name), f"{name} is no AEAD cipher"
        assert bits >= 128
        assert not any(weak in name for weak in WEAK), name


def test_it_does_not_renegotiate(server: Server) -> None:
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("openssl is not installed")
    asked = subprocess.run(
        [program, "s_client", "-connect", f"127.0.0.1:{server.port}", "-tls1_2"],
        input="R\n",
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert "RENEGOTIATING" in asked.stdout + asked.stderr, "it was asked"
    assert re.search("no renegotiation|handshake failure|ssl/tls alert|:error:", asked.stderr, re.IGNORECASE)
    assert "Compression: NONE" in asked.stdout
    assert "Secure Renegotiation IS supported" in asked.stdout, "an attacker could begin it (RFC 5746)"


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "::1"])
def test_chain_and_names_convince_strict_verification(server: Server, name: str) -> None:
    trust = ssl.create_default_context(cafile=str(server.data / "tls" / "ca.pem"))
    trust.verify_flags |= ssl.VERIFY_X509_STRICT
    shaken(server, trust, name).close()


def test_other_names_and_other_trust_are_refused(server: Server) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        shaken(server, ssl.create_default_context(cafile=str(server.data / "tls" / "ca.pem")), "files.example.org")
    with pytest.raises(ssl.SSLCertVerificationError):
        shaken(server, ssl.create_default_context(), "localhost")


def test_keys_signatures_and_dates(server: Server) -> None:
    with shaken(server, offering()) as connection:
        shown = x509.load_der_x509_certificate(connection.getpeercert(binary_form=True) or b"")
    authority = x509.load_pem_x509_certificate((server.data / "tls" / "ca.pem").read_bytes())
    for one in (shown, authority):
        key = one.public_key()
        assert isinstance(key, ec.EllipticCurvePublicKey)
        assert key.key_size >= 256
        assert isinstance(one.signature_hash_algorithm, hashes.SHA256)
        assert one.serial_number.bit_length() >= 64
    assert shown.not_valid_after_utc - shown.not_valid_before_utc <= dt.timedelta(days=398), "browsers accept no more"
    assert shown.extensions.get_extension_for_class(x509.BasicConstraints).value.ca is False
    assert authority.extensions.get_extension_for_class(x509.BasicConstraints).value.path_length == 0
    assert not list((server.data / "tls").glob("*key.pem")) or all(
        key.stat().st_mode & 0o777 == 0o600 for key in (server.data / "tls").glob("*key.pem")
    )


def test_plain_http_at_the_tls_port_is_not_answered(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as plain:
        plain.sendall(b"GET /dirws/login HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = b"".join(itertools.takewhile(bool, iter(lambda: plain.recv(1000), b"")))
    assert b"Sign in" not in answer


def test_the_certificates_end_can_be_asked_for(server: Server) -> None:
    with server.client() as http:
        told = http.get("/health/ready").json()["certificate"]
    assert 390 <= told["days_left"] <= 397
    assert told["late"] is False
    assert "the certificate expires soon" not in server.log_text


@pytest.mark.parametrize(
    ("age_days", "said"),
    [
        (387, "the certificate expires soon"),
        pytest.param(400, "the certificate has expired", marks=pytest.mark.campaign),
    ],
)
def test_an_own_certificate_that_ends_is_told_of(server: Server, tmp_path: Path, age_days: int, said: str) -> None:
    now = clock.now()
    own = certificates.ensure(tmp_path / "own", [], now - age_days * 86_400 * SECOND)
    data = tmp_path / "data"
    initialised(data)
    given = ("--set", f"web.certificate_file={own.cert_file}", "--set", f"web.key_file={own.key_file}")
    running = Server(data, free_port(), *given)
    try:
        until(lambda: running.has_logged("ready"), lambda: running.log_text)
        with httpx.Client(base_url=running.base, verify=False, trust_env=False) as http:
            # The agent may still be making the first index.
            until(lambda: http.get("/health/ready").status_code == 200, lambda: http.get("/health/ready").text)
            ready = http.get("/health/ready").json()
        assert ready["certificate"] == {"days_left": 397 - age_days - 1, "late": True}
        assert said in running.log_text
    finally:
        running.kill()


def test_the_own_cas_certificate_is_renewed_at_the_next_start(tmp_path: Path) -> None:
    data = tmp_path / "data"
    initialised(data)
    certificates.ensure(data / "tls", ["127.0.0.1"], clock.now() - 387 * 86_400 * SECOND)
    with Server(data, free_port()) as running, running.client() as http:
        assert http.get("/health/ready").json()["certificate"]["days_left"] > 390
        assert "expires soon" not in running.log_text


@pytest.mark.campaign
def test_a_renewed_certificate_is_shown_by_every_worker_and_no_request_fails(tmp_path: Path) -> None:
    first, second = (certificates.ensure(tmp_path / name, [], clock.now()) for name in ("first", "second"))
    own = certificates.Certificates(tmp_path / "both.pem", tmp_path / "own.pem", tmp_path / "own-key.pem")
    own.ca_file.write_bytes(first.ca_file.read_bytes() + second.ca_file.read_bytes())
    shutil.copy(first.cert_file, own.cert_file)
    shutil.copy(first.key_file, own.key_file)
    data = tmp_path / "data"
    initialised(data)
    given = [f"web.certificate_file={own.cert_file}", f"web.key_file={own.key_file}", "web.workers=3"]
    running = Server(data, free_port(), *(word for each in given for word in ("--set", each)))
    trust = ssl.create_default_context(cafile=str(own.ca_file))
    shown, failures, is_over = set[bytes](), list[str](), threading.Event()

    def call() -> None:
        while not is_over.is_set():
            try:
                with shaken(running, trust, "localhost") as connection:
                    shown.add(connection.getpeercert(binary_form=True) or b"")
                    connection.sendall(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    assert connection.recv(1000).startswith(b"HTTP/1.1 200 ")
            except (OSError, AssertionError) as error:
                failures.append(repr(error))

    callers = [threading.Thread(target=call) for _ in range(3)]
    try:
        until(lambda: running.has_logged("ready"), lambda: running.log_text)
        for caller in callers:
            caller.start()
        shutil.copy(second.cert_file, own.cert_file)
        until(lambda: running.log_text.count("replaced files cannot be used") == 3, lambda: running.log_text)
        assert shown == {x509.load_pem_x509_certificate(first.cert_file.read_bytes()).public_bytes(Encoding.DER)}
        shutil.copy(second.key_file, own.key_file)
        newest = x509.load_pem_x509_certificate(second.cert_file.read_bytes()).public_bytes(Encoding.DER)

        def only_newest() -> bool:
            shown.clear()
            until(lambda: bool(shown), lambda: str(failures))
            return {shaken_certificate(running, trust) for _ in range(30)} == {newest}

        until(only_newest, "a worker still shows the first")
        assert failures == []
    finally:
        is_over.set()
        for caller in callers:
            caller.join(30)
        running.kill()


def shaken_certificate(server: Server, trust: ssl.SSLContext) -> bytes:
    with shaken(server, trust, "localhost") as connection:
        return connection.getpeercert(binary_form=True) or b""


def test_a_search_of_a_user_trusts_the_system_s_cas_too_and_repeats_what_a_proxy_answered(tmp_path: Path) -> None:
    data = tmp_path / "data"
    initialised(data)
    certificates.ensure(data / "tls", [], clock.now())
    public = certificates.ensure(tmp_path / "public", [], clock.now())
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(public.cert_file, public.key_file)

    class Proxy(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(502)
            self.end_headers()
            self.wfile.write(b"<html>Bad Gateway</html>")

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as proxy:
        proxy.socket = tls.wrap_socket(proxy.socket, server_side=True)
        threading.Thread(target=proxy.serve_forever).start()
        try:
            refused = muniment(
                data,
                "--set",
                f"web.base_address=https://localhost:{proxy.server_address[1]}",
                *("search", "", "--user", "admin@directory.admin"),
                environment={"SSL_CERT_FILE": str(public.ca_file), "MUNIMENT_PASSWORD": "sesame"},
            )
        finally:
            proxy.shutdown()
    assert refused.returncode == 3
    assert "Not signed in: the server answered 502: <html>Bad Gateway</html>" in refused.stderr

"""Which objects lie below a prefix of a bucket? After the store was silent, every caller is refused for some seconds,
so that a dead store does not keep all threads of a server waiting.
"""

import http.client
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

import lxml.etree
import obstore
import structlog
from obstore.exceptions import AlreadyExistsError, BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import S3Store

from muniment.ground import renewal
from muniment.ground.clock import SECOND, Instant
from muniment.ground.refusals import NotStored
from muniment.ground.renewal import Renewable
from muniment.repository.content_options import PART_BYTES, S3Options
from muniment.repository.refusals import StoreUnavailable
from muniment.repository.store.content.s3.signing import S3Request, SigningKey

log = structlog.get_logger("muniment.content")

_REQUEST_SECONDS, _CONNECT_SECONDS, _SMALL_SECONDS = 20, 3, 5
_RETRIES, _RETRY_SECONDS = 2, 8
_SILENCE_SECONDS, _PAUSE_SECONDS = 2.5, 5.0
_LISTED_AT_A_TIME = 1000
_LONGEST_LIST = 8 << 20


class BucketObject(NamedTuple):
    """``name`` is below the prefix, ``size`` in bytes."""

    name: str
    size: int
    modified: Instant


class UnfinishedUpload(NamedTuple):
    """An unfinished upload in parts: the object that it makes, its id, and when it began."""

    name: str
    id: str
    began: Instant


class MissingObject(Exception):
    """The object is missing, or ends before the range."""


class ContentBucket:
    """The objects below a prefix of one bucket.

    ``clock`` dates signatures. The connection is made with the first request: a process may fork only before it.
    """

    def __init__(self, options: S3Options, clock: Callable[[], Instant]) -> None:
        self._options, self._clock = options, clock
        self._prefix = f"{options.prefix}/" if options.prefix else ""
        self._opening = threading.Lock()
        self._opened: tuple[bytes, S3Store] | None = None
        self._silent = False
        self._refuses_until = 0.0
        self._asking_again = threading.Lock()

    @property
    def address(self) -> str:
        return f"{self._options.endpoint}/{self._options.bucket}/{self._prefix}"

    def head(self, name: str) -> int:
        """Raises MissingObject."""
        with self.asking():
            try:
                return obstore.head(self._store, self._prefix + name)["size"]
            except FileNotFoundError:
                # The answer to HEAD has no body, so it does not say whether the object or the bucket is missing.
                return obstore.get(self._store, self._prefix + name, options={"range": (0, 1)}).meta["size"]

    def get(self, name: str, start: int, end: int) -> tuple[bytes, int]:
        """Return the bytes of a range, which is not empty, and the size of the object; fewer if it ends earlier.

        Raises MissingObject.
        """
        with self.asking():
            result = obstore.get(self._store, self._prefix + name, options={"range": (start, end)})
            return bytes(result.bytes()), result.meta["size"]

    def read(self, name: str, most: int) -> bytes:
        """Raises MissingObject."""
        size = self.head(name)
        return self.get(name, 0, min(size, most))[0] if size else b""

    def put(self, name: str, data: bytes) -> None:
        """Write or replace an object in one request."""
        with self.asking():
            obstore.put(self._store, self._prefix + name, data, use_multipart=False)

    def create(self, name: str, data: bytes) -> None:
        """Write an object unless its name is taken. A store that ignores this condition replaces it."""
        with self.asking():
            try:
                obstore.put(self._store, self._prefix + name, data, mode="create")
            except AlreadyExistsError:
                return

    def open_writer(self, name: str) -> "ObjectWriter":
        """Begin an object, which exists once its writer is closed.

        With ``PART_BYTES`` or more, it is sent in parts.
        """
        return ObjectWriter(self, name)

    def remove(self, name: str) -> None:
        with self.asking():
            obstore.delete(self._store, self._prefix + name)

    def objects(self, folder: str) -> Iterator[BucketObject]:
        """``folder`` is without its slash; the order is the store's own."""
        with self.asking():
            pages = iter(obstore.list(self._store, self._prefix + folder, chunk_size=_LISTED_AT_A_TIME))
        while True:
            with self.asking():
                page = next(pages, None)
            if page is None:
                return
            for each in page:
                name = each["path"].removeprefix(self._prefix)
                yield BucketObject(name, each["size"], _instant(each["last_modified"]))

    def uploads(self, beginning: str) -> Iterator[UnfinishedUpload]:
        markers: dict[str, str] = {}
        while True:
            page = self._ask("GET", "", {"uploads": "", "prefix": self._prefix + beginning, **markers})
            for each in page.iterfind("{*}Upload"):
                name = _text(each, "Key").removeprefix(self._prefix)
                began = datetime.fromisoformat(_text(each, "Initiated"))
                yield UnfinishedUpload(name, _text(each, "UploadId"), _instant(began))
            markers = {
                "key-marker": _text(page, "NextKeyMarker"),
                "upload-id-marker": _text(page, "NextUploadIdMarker"),
            }
            if _text(page, "IsTruncated") != "true" or not markers["key-marker"]:
                return

    def abort(self, upload: UnfinishedUpload) -> None:
        self._ask("DELETE", self._prefix + upload.name, {"uploadId": upload.id})

    def open_file(self, name: str) -> Any:
        return obstore.open_writer(self._store, self._prefix + name, buffer_size=PART_BYTES, max_concurrency=1)

    @property
    def _store(self) -> S3Store:
        with self._opening:
            authority = self._authority()
            if self._opened is None or self._opened[0] != authority:
                self._opened = authority, self._open(authority)
            return self._opened[1]

    def _authority(self) -> bytes:
        """The certificates that are trusted beside the system's; empty for none."""
        if not self._options.ca_file:
            return b""
        try:
            return self._renewable_authority.newest()
        except (OSError, ValueError) as error:
            raise StoreUnavailable("The CA certificates of the content store's settings cannot be read.") from error

    @cached_property
    def _renewable_authority(self) -> Renewable[bytes]:
        file = Path(self._options.ca_file)

        def read() -> bytes:
            authority = file.read_bytes()
            if not authority.strip():
                raise ValueError(f"{file} is empty")
            _trust(authority)
            return authority

        return Renewable([file], read, renewal.TRUST_TO_DO)

    def _open(self, authority: bytes) -> S3Store:
        options, credentials = self._options, self._credentials
        key: dict[str, str | None] = {"access_key_id": credentials.access_key, "secret_access_key": credentials.secret}
        key |= {"token": None, "expires_at": None}
        client: dict[str, Any] = {
            "allow_http": options.endpoint.startswith("http://"),
            "connect_timeout": f"{_CONNECT_SECONDS}s",
            "timeout": f"{_REQUEST_SECONDS}s",
            "user_agent": "muniment",
        }
        if authority:
            client["root_certificate"] = authority

        # Every option is named here: the library would take a missing one from a variable of the environment.
        return S3Store(
            options.bucket,
            endpoint=options.endpoint,
            aws_endpoint_url_s3=options.endpoint,
            region=options.region,
            skip_signature=False,
            virtual_hosted_style_request=False,
            unsigned_payload=False,
            s3_express=False,
            disable_bulk_delete=True,
            credential_provider=cast(Any, lambda: key),
            client_options=client,  # type: ignore[arg-type]
            retry_config={
                "max_retries": _RETRIES,
                "retry_timeout": timedelta(seconds=_RETRY_SECONDS),
                "backoff": {
                    "init_backoff": timedelta(milliseconds=100),
                    "max_backoff": timedelta(seconds=1),
                    "base": 2,
                },
            },
        )

    @cached_property
    def _credentials(self) -> SigningKey:
        options = self._options
        secret = options.access_secret
        if options.access_secret_file:
            secret = _read_file(options.access_secret_file).decode("utf-8", "replace").strip()
        return SigningKey(options.access_key, secret, options.region)

    def _ask(self, method: str, name: str, query: dict[str, str]) -> "lxml.etree._Element":
        parts, path = urlsplit(self._options.endpoint), f"/{self._options.bucket}" + (f"/{name}" if name else "")
        request = S3Request(method, parts.netloc, path, query)
        connection: http.client.HTTPConnection
        with self.asking():
            if parts.scheme == "https":
                trust = _trust(self._authority())
                connection = http.client.HTTPSConnection(parts.netloc, timeout=_SMALL_SECONDS, context=trust)
            else:
                connection = http.client.HTTPConnection(parts.netloc, timeout=_SMALL_SECONDS)
            with closing(connection):
                headers = request.headers(self._credentials, datetime.fromtimestamp(self._clock() / SECOND, UTC))
                connection.request(method, request.target, headers=headers)
                response = connection.getresponse()
                body = response.read(_LONGEST_LIST)
            if response.status >= 300:
                raise BaseError(f"{method} {path}: {response.status} {body[:500].decode('utf-8', 'replace')}")
            parser = lxml.etree.XMLParser(resolve_entities=False, no_network=True)
            return lxml.etree.fromstring(body or b"<Done/>", parser)

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Turn the store's errors into StoreUnavailable and MissingObject.

        After the store was silent, every caller is refused for some seconds; then one at a time may ask until it
        answers.
        """
        is_first = False
        if self._silent:
            is_first = time.monotonic() >= self._refuses_until and self._asking_again.acquire(blocking=False)
            if not is_first:
                raise StoreUnavailable("The content store did not answer moments ago: try again soon.")
        began = time.monotonic()
        try:
            yield
            self._silent = False
        except (BaseError, OSError, http.client.HTTPException, lxml.etree.XMLSyntaxError, ValueError) as error:
            self._silent = time.monotonic() - began > _SILENCE_SECONDS
            self._refuses_until = time.monotonic() + _PAUSE_SECONDS
            raise self._translate(error) from error
        finally:
            if is_first:
                self._asking_again.release()

    def _translate(self, error: Exception) -> Exception:
        text = str(error)
        if "NoSuchBucket" in text:
            sentence = "The content store does not have the bucket that the settings name."
        elif (isinstance(error, FileNotFoundError) and "NoSuchKey" in text) or "InvalidRange" in text:
            # Any other 404 does not tell of the object: it may come from a server that is no S3 store.
            return MissingObject(text)
        elif isinstance(error, PermissionDeniedError | UnauthenticatedError):
            sentence = "The content store does not let this server in."
        else:
            sentence = "The content store does not answer."
        log.warning("the content store fails", store=self.address, reason=text.partition("\n\nDebug")[0][:500])
        return StoreUnavailable(sentence)


class ObjectWriter:
    """``write`` and ``close`` may raise StoreUnavailable."""

    def __init__(self, bucket: ContentBucket, name: str) -> None:
        self._bucket, self._name = bucket, name
        self._file: Any = None
        self._size = 0

    def write(self, pieces: Sequence[bytes]) -> None:
        """Bytes are sent when there are enough for a part."""
        with self._bucket.asking():
            if self._file is None:
                self._file = self._bucket.open_file(self._name)
            for piece in pieces:
                self._size += len(piece)
                self._file.write(piece)

    def close(self) -> None:
        self.write([])
        with self._bucket.asking():
            self._file.close()

    @property
    def is_in_parts(self) -> bool:
        return self._size >= PART_BYTES

    def drop(self) -> None:
        """Give the object up. Parts that the store fails to drop are dropped by the sweep."""
        self._file = None
        if not self.is_in_parts:
            return
        try:
            for upload in self._bucket.uploads(self._name):
                self._bucket.abort(upload)
        except NotStored as refusal:
            log.warning("an unfinished upload stays for now", name=self._name, reason=refusal.sentence)


def _trust(authority: bytes) -> ssl.SSLContext:
    """Raises OSError, ValueError."""
    trust = ssl.create_default_context()
    if authority:
        trust.load_verify_locations(cadata=authority.decode("ascii", "ignore"))
    return trust


def _read_file(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise StoreUnavailable(f"A file of the content store's settings cannot be read: {error.strerror}.") from error


def _instant(moment: datetime) -> Instant:
    return int(moment.timestamp() * SECOND)


def _text(element: "lxml.etree._Element", name: str) -> str:
    return element.findtext(f"{{*}}{name}", "")

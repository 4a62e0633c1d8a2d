"""Sign a request to an S3 store with a key and its secret (AWS Signature Version 4).

Source: https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html
"""

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime
from urllib.parse import quote

import msgspec


class SigningKey(msgspec.Struct, frozen=True):
    """A key's name, its secret, and the region for which it signs."""

    access_key: str
    secret: str
    region: str


class S3Request(msgspec.Struct, frozen=True):
    """A request without a body; ``host`` has the port."""

    method: str
    host: str
    path: str
    query: Mapping[str, str]

    @property
    def target(self) -> str:
        return self._path + ("?" + self._query if self._query else "")

    @property
    def _path(self) -> str:
        return quote(self.path, safe="/-_.~")

    @property
    def _query(self) -> str:
        return "&".join(f"{quote(name, '-_.~')}={quote(value, '-_.~')}" for name, value in sorted(self.query.items()))

    def headers(self, credentials: SigningKey, now: datetime) -> dict[str, str]:
        moment, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
        digest = hashlib.sha256(b"").hexdigest()
        headers = {"host": self.host, "x-amz-content-sha256": digest, "x-amz-date": moment}
        lines = [f"{name}:{value}" for name, value in headers.items()]
        names = ";".join(headers)
        canonical = "\n".join([self.method, self._path, self._query, *lines, "", names, digest])
        scope = f"{day}/{credentials.region}/s3/aws4_request"
        text = "\n".join(["AWS4-HMAC-SHA256", moment, scope, hashlib.sha256(canonical.encode()).hexdigest()])
        key = f"AWS4{credentials.secret}".encode()
        for part in scope.split("/"):
            key = _mac(key, part)
        parts = (f"Credential={credentials.access_key}/{scope}", f"SignedHeaders={names}")
        signature = f"Signature={_mac(key, text).hex()}"
        return headers | {"authorization": f"AWS4-HMAC-SHA256 {', '.join((*parts, signature))}"}


def _mac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()

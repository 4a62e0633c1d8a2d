"""Which client sends a request, and does it show that it is this client (RFC 6749 2.3, RFC 7523)?

It shows a secret in the body or by HTTP Basic, an assertion that its key signed, or, as a public client, nothing.
"""

import asyncio
import base64
from collections.abc import Mapping

import msgspec
from starlette.requests import Request

from muniment.directory.context import Directory
from muniment.directory.oauth import assertions, clients
from muniment.directory.oauth.clients import Client, ClientProof
from muniment.directory.refusals import InvalidClient, InvalidTokenRequest
from muniment.directory.sign_in import passwords
from muniment.ground.refusals import Malformed
from muniment.web.requests import bodies


def read(request: Request, parameters: Mapping[str, str]) -> ClientProof:
    """In one way only, never in two (RFC 6749 2.3). Raises InvalidTokenRequest, InvalidClient."""
    basic = _basic(request)
    assertion = _assertion(parameters)
    if sum((basic is not None, assertion is not None, "client_secret" in parameters)) > 1:
        raise InvalidTokenRequest(
            "The client authenticates twice: use the body, the Authorization header or an assertion, one of them."
        )
    if basic is not None:
        return _named_as_in_body(basic, parameters)
    client_id = parameters.get("client_id") or (assertions.subject(assertion) if assertion else "")
    if not client_id:
        raise InvalidTokenRequest("The parameter client_id is missing.")
    return ClientProof(client_id, parameters.get("client_secret"), assertion)


async def authenticate(directory: Directory, client: Client, proof: ClientProof, address: str) -> None:
    """Check what the client shows; ``clients.find`` has seen that it shows what it must. Raises InvalidClient,
    Overloaded.
    """
    if proof.assertion is not None:
        assertion = assertions.verify(
            client.settings.jwks, proof.client_id, proof.assertion, _audiences(directory, client), directory.clock()
        )
        await directory.transactions.write(assertions.use, client.id, assertion)
    elif client.secret_hash is not None and not passwords.is_made_of(client.secret_hash, proof.secret or ""):
        asker = clients.asker(proof.client_id, address)
        check = directory.gate.check(client.secret_hash, proof.secret or "", asker, directory.clock())
        if not await asyncio.wrap_future(check):
            raise InvalidClient(clients.REFUSED)


async def identify(directory: Directory, proof: ClientProof, address: str) -> Client:
    """Find the client and check what it shows. Raises InvalidClient, Overloaded."""
    try:
        client = await directory.transactions.read(clients.find, directory.clients, proof)
        await authenticate(directory, client, proof, address)
    except InvalidClient:
        if proof.raw is None:
            raise
        return await identify(directory, proof.raw, address)
    return client


def _audiences(directory: Directory, client: Client) -> tuple[str, ...]:
    if client.settings.takes_endpoint_audience:
        return directory.issuer, *(f"{directory.issuer}{path}" for path in ("/oauth2/token", "/login"))
    return (directory.issuer,)


def _assertion(parameters: Mapping[str, str]) -> str | None:
    if "client_assertion" not in parameters and "client_assertion_type" not in parameters:
        return None
    if parameters.get("client_assertion_type") != assertions.TYPE or "client_assertion" not in parameters:
        raise InvalidClient(f"A client_assertion comes with the client_assertion_type {assertions.TYPE}.")
    return parameters["client_assertion"]


def _named_as_in_body(proof: ClientProof, parameters: Mapping[str, str]) -> ClientProof:
    readings = [each for each in (proof, proof.raw) if each is not None]
    named = [each for each in readings if parameters.get("client_id", each.client_id) == each.client_id]
    if not named:
        raise InvalidTokenRequest("The client_id of the body differs from the client in the Authorization header.")
    return named[0] if len(named) == len(readings) else msgspec.structs.replace(named[0], raw=None)


def _basic(request: Request) -> ClientProof | None:
    """The client form-encodes both parts before it joins them (RFC 6749 2.3.1). Many do not: if the texts differ, what
    was sent is the second reading.
    """
    headers = [value for name, value in request.scope["headers"] if name == b"authorization"]
    values = [value.decode("latin-1").strip() for value in headers]
    # Clients of the field send an empty Bearer beside the credentials of the body.
    credentials = [value for value in values if value and value.partition(" ")[0].lower() != "bearer"]
    if not credentials:
        return None
    scheme, _, encoded = credentials[0].partition(" ")
    if len(credentials) > 1 or scheme.lower() != "basic":
        raise InvalidClient("The client may authenticate by HTTP Basic, in the body or by an assertion.")
    try:
        sent = base64.b64decode(encoded.strip(), validate=True).decode("utf-8")
    except ValueError as error:
        raise InvalidClient("The Authorization header cannot be read as HTTP Basic.") from error
    raw, decoded = _pair(sent, decode=False), None
    try:
        decoded = _pair(sent, decode=True)
    except Malformed as error:
        if raw is None:
            raise InvalidClient("The Authorization header cannot be read as HTTP Basic.") from error
    if raw is None or (decoded is None and "\x00" in sent):
        raise InvalidClient("The Authorization header names no client.")
    if decoded is None or decoded == raw:
        return raw
    return msgspec.structs.replace(decoded, raw=raw)


def _pair(sent: str, *, decode: bool) -> ClientProof | None:
    client_id, colon, secret = sent.partition(":")
    if decode:
        client_id, secret = (
            bodies.form_value(part.encode("utf-8"), "The Authorization header") for part in (client_id, secret)
        )
    return ClientProof(client_id, secret or None) if colon and client_id else None

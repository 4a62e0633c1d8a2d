"""A server with everything that a standard client may ask for: over TLS on a real socket, at the present time.

Its issuer is its own address, so a client finds everything from `Stage.issuer`. What is secret or signs is shown here.
"""

import re
import ssl
from typing import Any, NamedTuple

import httpx
import lxml.html
import msgspec
from joserfc.jwk import ECKey, RSAKey

from muniment.directory.administration import client_decisions
from muniment.directory.entries import attributes, editing, entries, oauth_clients, resources
from muniment.directory.entries.resources import TokenFormat
from muniment.directory.entries.table import Entry
from muniment.directory.sign_in.passwords import new_secret
from muniment.ground import clock
from muniment.ground.clock import Instant
from tests.clock import NOON, Clock
from tests.scenes import Loop, Person, Served, Site, World

LOOPBACK = "http://127.0.0.1/callback"
"""A redirect address of the clients. A public client may put any port into it."""

EMAIL = "reader@example.org"
"""That of the person on the stage."""

WEB = "https://app.example/callback"
"""A redirect address of the clients."""


class Present(Clock):
    """The time as it is, for clients that look at the clock themselves; ``shift`` and ``advance`` let it be later."""

    def __call__(self) -> Instant:
        return clock.now() + self.now - NOON


class Client(NamedTuple):
    """A registered client: its id, its secret (or none), its private JSON Web Key with ``kid`` and ``alg`` (or {})."""

    id: str
    secret: str
    key: dict[str, Any]


class Resource(NamedTuple):
    """A protected API: its identifier, the scope by which a client asks for it, its address (RFC 8707), its secret.

    The identifier and the secret authenticate it at introspection and at tokeninfo.
    """

    id: str
    scope: str
    address: str
    secret: str


class Stage:
    """``person`` has a password and is in every resource's access role, ``outsider`` in none; ``admin`` administers.

    All clients are in every access role, so client_credentials work for each confidential one, and may use every grant.
    ``device`` is public, ``exchanging`` may act as ``person``, ``by_rsa`` and ``by_ec`` authenticate by private_key_jwt
    (RS256, ES256). ``repository`` is the resource that guards the repository at ``repository_address``; the tokens of
    ``opaque`` are opaque, those of ``rs256`` and ``es256`` RFC 9068 JWTs.
    """

    def __init__(self, world: World, loop: Loop) -> None:
        self.world, self.site = world, Site(world, "neutral", loop)
        self._clients: list[Entry] = []
        self.served = Served(self.site)
        self.base, self.ca_file = self.served.base, self.served.ca_file
        self.issuer = f"{self.base}{self.site.directory}"
        self.repository_address = f"{self.base}{self.site.repository}"
        self.person, self.outsider, self.admin = world.reader, world.outsider, world.admin(self.site.directory_names)
        with world.directory_db.begin() as cx:
            resources.change(cx, resources.by_id(cx, world.resource_id), allow_impersonation=True)
            attributes.add(cx, world.names, world.entry(self.person), {"mail": [EMAIL]})
        secret = world.secrets[world.resource_id]
        scope = f"resource:{world.resource_id}"
        self.repository = Resource(world.resource_id, scope, self.repository_address, secret)
        self.opaque = self.resource("Opaque", "opaque")
        self.rs256 = self.resource("Signed by RSA", "RS256")
        self.es256 = self.resource("Signed by EC", "ES256")
        self.public = self.client("public")
        self.confidential = self.client("confidential", secret=True)
        self.by_rsa = self.client("by-rsa", key=RSAKey.generate_key(2048, {"kid": "rsa", "alg": "RS256"}))
        self.by_ec = self.client("by-ec", key=ECKey.generate_key("P-256", {"kid": "ec", "alg": "ES256"}))
        self.device = self.client("device")
        self.exchanging = self.client("exchanging", secret=True, allow_impersonation=True)

    def close(self) -> None:
        """Stop the server."""
        self.served.close()
        self.site.close()

    def resource(self, name: str, token_format: TokenFormat = "opaque", **more: Any) -> Resource:
        """Register a protected API, activated, that lets ``person`` and all clients in.

        ``more`` are fields of ``resources.change``.
        """
        with self.world.directory_db.begin() as cx:
            made = resources.add(cx, self.world.names, name, self.world.clock())
            address = f"https://api.example/{made.id}"
            secret = resources.activate(cx, made.id, self.world.clock())
            resources.change(cx, made, address=address, token_format=token_format, allow_impersonation=True, **more)
            for each in (self.world.entry(self.person), *self._clients):
                resources.add_to_role(cx, made, each)
        return Resource(made.id, f"resource:{made.id}", address, secret)

    def client(self, name: str, *, secret: bool = False, key: RSAKey | ECKey | None = None, **settings: Any) -> Client:
        """Register a client: public, or with a secret, or with a key. Every resource lets it in.

        ``settings`` are fields of ``ClientSettings``, on top of both redirect addresses and every grant.
        """
        shown, kept = new_secret() if secret else ("", None)
        usual: dict[str, Any] = {"redirect_urls": (LOOPBACK, WEB), "denied_grants": ()}
        if key is not None:
            public = msgspec.json.encode({"keys": [key.as_dict(private=False)]}).decode()
            usual |= {"authentication": "private_key_jwt", "jwks": public}
        with self.world.directory_db.begin() as cx:
            entry = editing.add_client(cx, name, self.world.clock(), password_hash=kept)
            self._clients.append(entry)
            for each in resources.all_resources(cx):
                if each.built_in is None:
                    resources.add_to_role(cx, each, entry)
        self.set(name, **usual | settings)
        return Client(name, shown, {} if key is None else dict(key.as_dict(private=True)))

    def set(self, client_id: str, **settings: Any) -> None:
        """Change settings of a client, fields of ``ClientSettings``."""
        with self.world.directory_db.begin() as cx:
            entry = entries.find_client(cx, client_id)
            former = oauth_clients.read(cx, [entry.id])[entry.id]
            new = msgspec.structs.replace(former, **settings)
            client_decisions.set_settings(cx, entry, new, self.world.clock())

    def browser(self) -> "Browser":
        """Give a browser of its own, without cookies."""
        return Browser(self)


class Browser:
    """A person's browser without scripts, over TLS, which fills in the directory's forms. Its cookies are its own."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        trusted = ssl.create_default_context(cafile=stage.ca_file)
        self.http = httpx.Client(verify=trusted, headers={"Accept": "text/html"}, timeout=30, trust_env=False)

    def allow(self, authorize_url: str, person: Person | None = None, *, button: str = "allow") -> str:
        """Follow an application's link: sign in as ``person`` (``stage.person``), unless somebody is signed in, and
        press a button of the consent (``allow``, ``deny``), if it is asked. Return the redirect address with the
        answer in its query. An answer that is to be posted is returned likewise.
        """
        answer = self._signed_in(self.http.get(authorize_url), person)
        if answer.status_code == 200 and _names(answer) & {"decision"}:
            answer = self._press(answer, decision=button)
        if answer.status_code == 200:
            form = _form(answer)
            return str(httpx.URL(form.action, params=dict(form.form_values())))
        assert answer.status_code == 303, answer.text
        return answer.headers["location"]

    def connect_device(self, verification_uri_complete: str, person: Person | None = None) -> None:
        """Follow a device's link (RFC 8628), sign in, and allow it."""
        answer = self._signed_in(self.http.get(verification_uri_complete), person)
        answer = self._press(self._press(answer), decision="allow")
        assert answer.status_code == 200, answer.text

    def close(self) -> None:
        """Close its connections."""
        self.http.close()

    def _signed_in(self, answer: httpx.Response, person: Person | None) -> httpx.Response:
        """Sign in on the page, if it asks for that, and give the page that follows."""
        who = person or self.stage.person
        prefix = self.stage.site.directory_names.form_prefix
        while answer.status_code == 303 and answer.headers["location"].startswith(("/", self.stage.base)):
            answer = self.http.get(httpx.URL(self.stage.base).join(answer.headers["location"]))
        if f"{prefix}password" in _names(answer):
            filled = {f"{prefix}username": who.id, f"{prefix}password": who.password}
            answer = self._press(answer, **filled)
            assert answer.status_code == 303, answer.text
            answer = self.http.get(httpx.URL(self.stage.base).join(answer.headers["location"]))
        return answer

    def _press(self, page: httpx.Response, **fields: str) -> httpx.Response:
        form = _form(page)
        return self.http.post(
            page.url.join(form.action),
            data=dict(form.form_values()) | fields,
            headers={"Sec-Fetch-Site": "same-origin"},
        )


def _form(page: httpx.Response) -> Any:
    tree: Any = lxml.html.fromstring(page.text)
    assert tree.forms, re.sub(r"\s+", " ", tree.text_content())
    return tree.forms[-1]


def _names(page: httpx.Response) -> set[str]:
    """List the names of all fields and buttons of a page."""
    tree: Any = lxml.html.fromstring(page.text or "<p></p>")
    return {each.get("name", "") for each in tree.iter("input", "button")}

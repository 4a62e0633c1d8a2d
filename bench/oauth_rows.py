"""The authorization server's rows: introspection, client credentials and the code flow beside other servers, what a
signature adds to a token, and keys that change under load.
"""

import base64
import hashlib
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlencode

import httpx
from joserfc import jwt as joserfc_jwt
from joserfc.jwk import KeySet

from bench import load, ours, page
from bench.load import Figures, Request
from bench.ours import FORM, PARTITION, PERSON, Data, Site
from bench.page import Line, Target, at_least, at_most
from bench.peers import keycloak
from bench.peers.tokens import TokenServer, basic
from bench.processes import run as run_command
from bench.run import Run
from bench.token_rows import CONNECTIONS, token_servers, warm_up
from muniment.database.audit import SYSTEM, acting
from muniment.directory.entries import editing, names, oauth_clients, resources
from muniment.directory.entries.oauth_clients import ClientSettings
from muniment.directory.oauth import signing_keys
from muniment.directory.sign_in.passwords import new_secret
from muniment.ground import clock
from muniment.ground.clock import SECOND
from muniment.installation import initialise

INTROSPECTION, CREDENTIALS, CODE = PEER_ROWS = ("introspection", "client-credentials", "code-flow")
JWT, ROTATION = "jwt", "key-rotation"

TARGETS: Mapping[str, Mapping[str, Target]] = {
    INTROSPECTION: {"node-oidc-provider": at_least(2), "Keycloak": at_least(4)},
    CREDENTIALS: {"node-oidc-provider": at_least(1), "Keycloak": at_least(4)},
    CODE: {"Keycloak": at_least(2)},
}
SIGNED = at_most(1.5)

_SERVICE = "bench-service"
_FORMATS = ("opaque", "RS256", "ES256")
_VERIFIER = "bench-verifier-" + "v" * 43
_SCOPES = "openid profile email"

_FORMER_SIGNS, _CHANGE_SECONDS = 8, 25
"""After so many seconds of the load the keys of an earlier change begin to sign, and so long it lasts."""

Ask = Callable[[float], Figures]
"""One round of so many seconds."""


class _Service(NamedTuple):
    """A confidential client of ours by its header, and resources by the format of their tokens."""

    header: tuple[str, str]
    resources: dict[str, str]


@acting(SYSTEM, clock.now)
def _prepare(data: Data) -> _Service:
    """Make a client with a secret that was made, which is in every access role, and resources of each format."""
    opened, now = data.opened(), clock.now()
    wire, made = opened.settings.directory.names, dict[str, str]()
    secret, hashed = new_secret()
    with opened.database("directory") as database, database.begin() as cx:
        client = editing.add_client(cx, _SERVICE, now, password_hash=hashed)
        oauth_clients.write(cx, client, ClientSettings(redirect_urls=(keycloak.RETURN,)), now)
        guard = resources.by_id(cx, data.resource_id)
        resources.add_to_role(cx, guard, client)
        for token_format in _FORMATS:
            resource = resources.add(cx, wire, f"tokens-{token_format}", now)
            resources.activate(cx, resource.id, now)
            resources.change(cx, resource, token_format=token_format)
            resources.add_to_role(cx, resource, client)
            made[token_format] = resource.id
    return _Service(("Authorization", basic(_SERVICE, secret)), made)


def _token(site: Site, service: _Service, **form: str) -> Request:
    return Request("POST", f"{site.base}/dirws/oauth2/token", urlencode(form), (FORM, service.header))


def _by_itself(site: Site, service: _Service, token_format: str = "opaque") -> Request:
    scope = names.scope(f"tokens-{token_format}")
    return _token(site, service, grant_type="client_credentials", scope=scope)


def _introspection(site: Site, service: _Service, token: str) -> Request:
    body = urlencode({"token": token, "token_type_hint": "access_token"})
    return Request("POST", f"{site.base}/dirws/oauth2/introspect", body, (FORM, service.header))


def peers(run: Run) -> Iterator[Line]:
    """Three rows beside servers that run at the same time, loaded in turn."""
    data = run.prepare(run.folder("oauth") / "data")
    service = _prepare(data)
    rows = {
        INTROSPECTION: ("introspection by a client with its secret, two cores", _introspecting, _their_introspection),
        CREDENTIALS: ("client credentials, a new durable token each", _getting_tokens, _their_tokens),
        CODE: ("code flow with PKCE: authorize with a session, then token", _flowing, _their_flow),
    }
    with ExitStack() as stack:
        site = stack.enter_context(ours.serving(data, "web.workers=2"))
        servers, missing = token_servers(run.folder("oauth-peers"), stack, django=False)
        for row in (row for row in PEER_ROWS if row in run.rows):
            work, mine, theirs = rows[row]
            wanted = [server for server in servers if _target(row, server.name)]
            yield from _beside(run, row, work, mine(site, service), [(one, theirs(one)) for one in wanted])
            for name, why in missing:
                if target := _target(row, name):
                    yield page.skipped(row, work, name, why, target)


def _target(row: str, server: str) -> Target | None:
    return next((target for name, target in TARGETS[row].items() if server.startswith(name)), None)


def _beside(run: Run, row: str, work: str, mine: Ask, theirs: Sequence[tuple[TokenServer, Ask]]) -> Iterator[Line]:
    found: dict[str, list[Figures]] = {server.name: [] for server, _ in theirs}
    own: list[Figures] = []
    for server, ask in theirs:
        ask(warm_up(run, server))
    mine(2)
    run.interleaved(
        lambda: own.append(mine(run.seconds)),
        *(partial(lambda one, ask: found[one.name].append(ask(run.seconds)), *pair) for pair in theirs),
    )
    for server, _ in theirs:
        yield page.compared(
            row,
            work,
            f"{server.name}: the same",
            [one.rate for one in own],
            [one.rate for one in found[server.name]],
            target=_target(row, server.name),
            our_cpu=page.cpu(one.cpu for one in own),
            their_cpu=page.cpu(one.cpu for one in found[server.name]),
            versions=f"{server.name}: {server.about}",
            remark=f"{CONNECTIONS} connections; {load.percentiles(own, found[server.name])}"
            f"{' of a request, a flow has two' if row == CODE else ''}; ours over TLS, theirs plain.",
        )


def _introspecting(site: Site, service: _Service) -> Ask:
    """The token is ana's, by the client that asks, as Keycloak's is alice's."""
    form = {"grant_type": "password", "username": f"{PERSON}@{PARTITION}", "password": site.data.secret}
    signed_in = site.ask(_token(site, service, **form, scope=_scope_of_guard())).json()
    asked = _introspection(site, service, signed_in["access_token"])
    return partial(_loaded, asked, TokenServer.ACTIVE, [site.program])


def _their_introspection(server: TokenServer) -> Ask:
    return partial(_loaded, server.introspection(), TokenServer.ACTIVE, server.programs)


def _getting_tokens(site: Site, service: _Service) -> Ask:
    return partial(_loaded, _by_itself(site, service), ("access_token",), [site.program])


def _their_tokens(server: TokenServer) -> Ask:
    return partial(_loaded, server.client_credentials(), ("access_token",), server.programs)


def _loaded(request: Request, wanted: tuple[str, ...], programs: list[Any], seconds: float) -> Figures:
    return load.run([request], wanted, programs, seconds=seconds, connections=CONNECTIONS)


def _scope_of_guard() -> str:
    return "resource:" + initialise.resource_name(initialise.REPOSITORY)


def _authorization(client_id: str, scope: str) -> dict[str, str]:
    challenge = base64.urlsafe_b64encode(hashlib.sha256(_VERIFIER.encode()).digest()).decode().rstrip("=")
    asked = {"client_id": client_id, "redirect_uri": keycloak.RETURN, "response_type": "code", "scope": scope}
    return {**asked, "state": "s" * 32, "code_challenge": challenge, "code_challenge_method": "S256"}


def _exchange(address: str, header: tuple[str, str]) -> Request:
    form = {"grant_type": "authorization_code", "redirect_uri": keycloak.RETURN, "code_verifier": _VERIFIER}
    return Request("POST", address, f"{urlencode(form)}&code=%s", (FORM, header))


def _flowing(site: Site, service: _Service) -> Ask:
    """Each connection is a browser of its own, in which ana is signed in. She has allowed the client once."""
    scope = f"{_SCOPES} {_scope_of_guard()}"
    address = f"{site.base}/dirws/oauth2/auth?{urlencode(_authorization(_SERVICE, scope))}"
    cookies = [_signed_in_browser(site) for _ in range(CONNECTIONS)]
    exchange = _exchange(f"{site.base}/dirws/oauth2/token", service.header)
    code = re.search("[?&]code=([^&]+)", _allowed(site, address, cookies[0]))
    if code is None:
        raise load.WrongAnswers("there is no code for a user who has allowed it")
    site.ask(replace(exchange, body=exchange.body.replace("%s", code[1])))
    browsers = [Request("GET", address, "", (cookie,)) for cookie in cookies]
    return lambda seconds: load.flows(browsers, exchange, "id_token", [site.program], seconds=seconds)


def _their_flow(server: TokenServer) -> Ask:
    address = f"{server.authorization_url}?{urlencode(_authorization('bench', _SCOPES))}"
    cookies = [keycloak.signed_in_browser(address) for _ in range(CONNECTIONS)]
    browsers = [Request("GET", address, "", (cookie,)) for cookie in cookies]
    exchange = _exchange(server.token_url, ("Authorization", server.authorization))
    return lambda seconds: load.flows(browsers, exchange, "id_token", server.programs, seconds=seconds)


def _signed_in_browser(site: Site) -> tuple[str, str]:
    """Sign ana in by our form: the header with the cookie of her ticket."""
    with httpx.Client(base_url=f"{site.base}/dirws", verify=site.ca_file, timeout=60) as http:
        form = {"csrf": _hidden(http.get("/login").text, "csrf"), "RFA": site.data.resource_id}
        form |= {"username": f"{PERSON}@{PARTITION}", "password": site.data.secret}
        http.post("/login", data=form)
        (name,) = [name for name in http.cookies if name.endswith("ticket")]
        return "Cookie", f"{name}={http.cookies[name]}"


def _allowed(site: Site, address: str, cookie: tuple[str, str]) -> str:
    """Where ana is led back to, once she has allowed what is asked for at this address."""
    with httpx.Client(headers=[cookie], verify=site.ca_file, timeout=60) as http:
        asked = http.get(address).raise_for_status().text
        form = {name: _hidden(asked, name) for name in ("csrf", "request")} | {"decision": "allow"}
        return str(http.post(address.partition("?")[0], data=form).headers.get("location", ""))


def _hidden(text: str, name: str) -> str:
    found = re.search(f'name="{name}" value="([^"]+)"', text)
    if found is None:
        raise load.WrongAnswers(f"the page has no field {name}")
    return found[1].replace("&amp;", "&")


def jwt(run: Run) -> Iterator[Line]:
    """A client's token as a JWT and as an opaque one, by one worker bound to one core, beside bare signatures."""
    data = run.prepare(run.folder(JWT) / "data")
    service = _prepare(data)
    used: dict[str, list[float]] = {token_format: [] for token_format in _FORMATS}
    alone: dict[str, list[float]] = {token_format: [] for token_format in _FORMATS[1:]}
    with ours.serving(data, "web.workers=1", core=0) as site:
        asked = {each: _by_itself(site, service, each) for each in _FORMATS}
        tokens = {each: str(site.ask(asked[each]).json()["access_token"]) for each in _FORMATS}

        def ask(each: str, seconds: float) -> float:
            figures = load.run([asked[each]], ["access_token"], [site.program], seconds=seconds, connections=8, core=1)
            return figures.cpu

        for each in _FORMATS:
            ask(each, 2)
        run.interleaved(
            *(partial(lambda each: used[each].append(ask(each, run.seconds)), each) for each in _FORMATS),
            *(partial(lambda each: alone[each].append(_signing(tokens[each])), each) for each in _FORMATS[1:]),
        )
    for each, bare in alone.items():
        added = [with_it - without for with_it, without in zip(used[each], used["opaque"], strict=True)]
        yield page.compared(
            JWT,
            f"CPU that a client's token takes more as a JWT ({each}) than as an opaque one",
            "bare joserfc: one signature of the same claims",
            added,
            bare,
            unit=" ms",
            target=SIGNED,
            our_cpu=page.cpu(used[each]),
            their_cpu=page.cpu(bare),
            remark=f"Client credentials, 8 connections, {len(tokens[each])} characters of token; an opaque one takes "
            f"{page.cpu(used['opaque'])}.",
        )


def _signing(token: str) -> float:
    """Sign the claims of a token in a fresh process on the first core, in a loop: CPU ms a signature."""
    code = (
        "import sys, time; from joserfc import jws; from joserfc.jwk import ECKey, RSAKey\n"
        "header, payload = jws.extract_compact(sys.argv[1].encode()).headers(), sys.argv[2].encode()\n"
        "rsa = header['alg'] == 'RS256'\n"
        "key = RSAKey.generate_key(2048, private=True) if rsa else ECKey.generate_key('P-256', private=True)\n"
        "sign = lambda: jws.serialize_compact(header, payload, key, algorithms=[header['alg']])\n"
        "[sign() for _ in range(200)]; before = time.process_time(); [sign() for _ in range(2000)]\n"
        "print(time.process_time() - before)\n"
    )
    payload = base64.urlsafe_b64decode(token.split(".")[1] + "==").decode()
    command = ["taskset", "-c", "0", sys.executable, "-c", code, token, payload]
    return float(run_command(command)) * 1000 / 2000


class _Seen:
    """What clients saw: how often each way said yes, every failure, and under which keys JWTs came."""

    def __init__(self) -> None:
        self.right: dict[str, int] = {}
        self.wrong: list[str] = []
        self.keys: set[str] = set()
        self._changing = threading.Lock()

    def note(self, way: str, problem: str, count: int = 1) -> None:
        with self._changing:
            if problem:
                self.wrong.append(f"{way}: {problem}")
            else:
                self.right[way] = self.right.get(way, 0) + count


def rotation(run: Run) -> list[Line]:
    """``muniment key rotate`` while clients verify. Keys of an earlier change begin to sign meanwhile."""
    data = run.prepare(run.folder(ROTATION) / "data")
    service = _prepare(data)
    seen = _Seen()
    with ours.serving(data, "web.workers=2") as site, ExitStack() as stack:
        _change_keys_before(data)
        kept = {each: str(site.ask(_by_itself(site, service, each)).json()["access_token"]) for each in _FORMATS[:2]}
        begun, until = time.monotonic(), time.monotonic() + _CHANGE_SECONDS
        clients = [threading.Thread(target=_verify, args=(site, service, kept, until, seen)) for _ in range(2)]
        for way, request, wanted in (
            ("tokeninfo", _of(site, service, "opaque").tokeninfo(kept["opaque"]), "token_id"),
            ("introspection", _introspection(site, service, kept["RS256"]), '"active":true'),
        ):
            clients.append(threading.Thread(target=_flood, args=(way, request, wanted, seen)))
        for each in clients:
            each.start()
            stack.callback(each.join)
        command = ours.command(data, "key", "rotate")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        took = time.monotonic() - begun
    if done.returncode:
        raise RuntimeError(f"key rotate failed: {done.stderr[-500:]}")
    if len(seen.keys) != 2 or took > _CHANGE_SECONDS:
        raise load.WrongAnswers(f"JWTs came under {len(seen.keys)} keys, and the change took {took:.0f} s")
    count = sum(seen.right.values()) + len(seen.wrong)
    by_way = ", ".join(f"{way} {number:,}" for way, number in sorted(seen.right.items()))
    return [
        Line(
            row=ROTATION,
            work="verifications that fail while muniment key rotate runs, two workers",
            beside="",
            must="0",
            met=not seen.wrong,
            figure=float(len(seen.wrong)),
            ours=f"{len(seen.wrong)} of {count:,}",
            remark=f"{by_way}. The command took {took:.0f} s. JWTs are new ones, and one from before; they came under "
            "two keys, because those of an earlier change began to sign meanwhile. Clients read the key set once, "
            f"before. {'; '.join(seen.wrong[:3])}".strip(),
        )
    ]


@acting(SYSTEM, clock.now)
def _change_keys_before(data: Data) -> None:
    """As if keys had been changed nearly as long ago as a key set is cached: the new ones soon begin to sign."""
    keys = [[signing_keys.generate("RS256"), signing_keys.generate("ES256")] for _ in range(2)]
    opened = data.opened()
    with opened.database("directory") as database, database.begin() as cx:
        signs_from = clock.now() + _FORMER_SIGNS * SECOND
        signing_keys.add_missing(cx, keys[0], signs_from - 4 * signing_keys.CACHED_SECONDS * SECOND)
        signing_keys.rotate(cx, keys[1], signs_from - signing_keys.CACHED_SECONDS * SECOND)


def _of(site: Site, service: _Service, token_format: str) -> Site:
    """The same site, at which tokens are verified for the resource of this format."""
    return replace(site, data=replace(site.data, resource_id=service.resources[token_format]))


def _verify(site: Site, service: _Service, kept: Mapping[str, str], until: float, seen: _Seen) -> None:
    """Get tokens and verify each in every way, with a key set that is read once."""
    with httpx.Client(verify=site.ca_file, timeout=60) as http:
        key_set = KeySet.import_key_set(http.get(f"{site.base}/dirws/oauth2/jwks").raise_for_status().json())

        def answered(way: str, request: Request, wanted: str) -> dict[str, Any]:
            try:
                answer = http.request(
                    request.method, request.address, content=request.body, headers=dict(request.headers)
                )
            except httpx.HTTPError as error:
                seen.note(way, repr(error))
                return {}
            is_right = answer.status_code == 200 and wanted in answer.text
            seen.note(way, "" if is_right else f"{answer.status_code} {answer.text[:100]}")
            return dict(answer.json()) if is_right else {}

        while time.monotonic() < until:
            for each in _FORMATS[:2]:
                fresh = answered("token", _by_itself(site, service, each), "access_token").get("access_token", "")
                for token in (fresh, kept[each]) if fresh else (kept[each],):
                    answered("introspection", _introspection(site, service, token), '"active":true')
                    answered("tokeninfo", _of(site, service, each).tokeninfo(token), "token_id")
                    if each != "opaque":
                        _verify_by_keys(token, key_set, seen)


def _verify_by_keys(token: str, key_set: KeySet, seen: _Seen) -> None:
    try:
        read = joserfc_jwt.decode(token, key_set, algorithms=["RS256"])
    except Exception as error:  # noqa: BLE001 - any is a verification that failed
        seen.note("by keys", repr(error))
        return
    seen.keys.add(read.header["kid"])
    seen.note("by keys", "")


def _flood(way: str, request: Request, wanted: str, seen: _Seen) -> None:
    figures = load.run([request], [wanted], [], seconds=_CHANGE_SECONDS, connections=4, tolerated=1.0)
    seen.note(way, "", figures.count - figures.wrong)
    for _ in range(figures.wrong):
        seen.note(way, "a wrong answer, or none")

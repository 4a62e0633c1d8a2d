"""A walk through every method of the field's directory client, unchanged, as a program of its own interpreter.

It reads what to do from its input, and prints what came of each method: a list of results in JSON. It is run with the
client's interpreter, which has none of the house's packages.
"""

import contextlib
import importlib.util
import json
import logging
import sys
import tempfile
import types
from typing import Any
from urllib.parse import urlsplit

ASKED: dict[str, Any] = {}
WIRE: list[list[Any]] = []
RESULTS: list[dict[str, Any]] = []


def load() -> Any:
    """Import the client's module without the package's first one, which imports what is not installed."""
    package = types.ModuleType("pyxecm")
    found = importlib.util.find_spec("pyxecm")
    package.__path__ = list(found.submodule_search_locations or ()) if found else []
    sys.modules["pyxecm"] = package
    module: Any = importlib.import_module("pyxecm.otds")
    module.REQUEST_RETRY_DELAY = 0
    logging.disable(logging.CRITICAL)
    return module


def watch() -> None:
    """Note every request and what was answered, without changing either."""
    requests: Any = importlib.import_module("requests")
    send = requests.Session.send

    def noting(self: Any, request: Any, **more: Any) -> Any:
        response = send(self, request, **more)
        try:
            is_object = isinstance(response.json(), dict)
        except ValueError:
            is_object = False
        WIRE.append([request.method, urlsplit(request.url).path, response.status_code, is_object, response.text[:300]])
        return response

    requests.Session.send = noting


def done_or_silent(returned: Any) -> bool:
    """Release 3.7.0 forgets to return what came of it."""
    return bool(returned) or (returned is None and WIRE[-1][2] == 204)


class Walk:
    """Calls the client's methods in an order in which each has what it needs."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def call(self, support: str, method: str, *arguments: Any, ok: Any = bool, **named: Any) -> Any:
        """Call a method. ``ok`` says whether it returned what its caller needs."""
        before = len(WIRE)
        function = getattr(self.client, method, None)
        if function is None:
            RESULTS.append(
                {"method": method, "support": support, "ok": None, "wire": [], "returned": "not in this release"}
            )
            return None
        try:
            returned = function(*arguments, **named)
            if isinstance(returned, types.GeneratorType):
                returned = list(returned)
            is_ok: bool | None = bool(ok(returned))
            shown = repr(returned)[:300]
        except KeyError as error:
            # Release 3.7.0 does not know the address that it asks for here.
            returned, shown = None, f"raised {error!r}"[:300]
            is_ok = None if error.args == ("partitionsUrl",) else False
        except Exception as error:  # noqa: BLE001 - whatever the client raises is a result
            returned, is_ok, shown = None, False, f"raised {error!r}"[:300]
        result = {"method": method, "support": support, "ok": is_ok, "wire": WIRE[before:], "returned": shown}
        RESULTS.append(result)
        return returned

    def sign_in(self) -> None:
        if ASKED["mode"] == "ticket":
            self.call("M", "authenticate", ok=lambda cookie: cookie["OTDSTicket"])
        self.call("M", "get_oidc_configuration", ok=lambda told: told["issuer"].endswith("/otdsws"))
        self.call("M", "get_jwks", ok=lambda told: all(key["value"] for key in told["keys"]))
        if ASKED["mode"] == "ticket":
            self.call("M", "authenticate_user_token", "ann", "x", ok=lambda token: not token)
        self.call("M", "get_current_user", ok=lambda answer: answer["isSysAdmin"] and answer["user"]["id"])
        self.call("M", "add_system_attribute", f"walk.{self.word}", "1", "For the walk")

    @property
    def word(self) -> str:
        word: str = ASKED["word"]
        return word

    def people(self) -> None:
        partition = self.word
        self.call("M", "add_partition", partition, "Of the walk", ok=lambda made: made["name"] == partition)
        self.call("M", "get_partition", partition, ok=lambda found: found["location"])
        for name in ("ann", "bob", "cy"):
            self.call("M", "add_user", partition, name, "D", name.title(), "Lee", f"{name}@example.org")
        ann = f"ann@{partition}"
        self.call("M", "get_user", partition, "ann", ok=lambda found: found["id"] == ann and found["location"])
        self.call(
            "M", "get_users", partition, page_size=2, ok=lambda page: len(page["users"]) == 2 and page["nextPageCookie"]
        )
        self.call(
            "M",
            "get_users",
            where_filter="ann",
            partition=partition,
            ok=lambda page: [each["name"] for each in page["users"]] == ["ann"],
        )
        self.call("M", "get_users_iterator", partition, page_size=2, ok=lambda every: len(every) == 3)
        self.call("M", "update_user", partition, ann, "title", "Boss", ok=lambda user: "Boss" in str(user))
        self.call(
            "M", "update_user", partition, ann, "description", "New", ok=lambda user: user["description"] == "New"
        )
        self.call(
            "M",
            "update_user",
            partition,
            f"cy@{partition}",
            "accountDisabled",
            "True",
            ok=lambda user: "true" in str(user),
        )
        self.call(
            "M",
            "get_users",
            partition,
            where_state="disabled",
            ok=lambda page: [each["name"] for each in page["users"]] == ["cy"],
        )
        self.call("M", "reset_user_password", ann, ASKED["new_password"], ok=done_or_silent)
        self.call("M", "add_group", partition, "staff", "D", ok=lambda made: made["name"] == "staff")
        self.call("M", "add_group", partition, "all", "D")
        self.call("M", "get_group", f"staff@{partition}", ok=lambda found: found["location"])
        self.call(
            "M", "get_groups", partition, ok=lambda page: len(page["groups"]) == 2 and page["nextPageCookie"] is None
        )
        self.call("M", "get_groups_iterator", partition, page_size=1, ok=lambda every: len(every) == 2)
        self.call("M", "add_user_to_group", ann, f"staff@{partition}")
        self.call("M", "add_group_to_parent_group", f"staff@{partition}", f"all@{partition}")
        self.call("S", "add_application_role", f"role-{self.word}", ok=lambda made: made["name"])
        self.call("S", "get_application_role", f"role-{self.word}", ok=lambda found: found["location"])
        self.call("S", "assign_user_to_application_role", "ann", partition, f"role-{self.word}")
        self.call("S", "assign_group_to_application_role", f"staff@{partition}", partition, f"role-{self.word}")

    def resources(self) -> None:
        name, partition = f"App {self.word}", self.word
        made = self.call(
            "M", "add_resource", name, "D", "Shown", ok=lambda made: made["resourceID"] and made["resourceDN"]
        )
        identity = made["resourceID"] if made else ""
        preset = {"resource_id": ASKED["identity"], "secret": ASKED["secret"]}
        self.call("M", "add_resource", f"Preset {self.word}", **preset, ok=lambda made: made["resourceState"] == 1)
        found = self.call("M", "get_resource", name, ok=lambda found: found["accessRoleList"])
        self.call("M", "get_resources", where_filter=name, ok=lambda page: len(page["resourceConfigList"]) == 1)
        self.call("M", "get_resources_iterator", page_size=2, ok=lambda every: len(every) >= 3)
        self.call(
            "S",
            "update_resource",
            name,
            dict(found or {}, description="New"),
            ok=lambda new: new["description"] == "New",
        )
        self.call("M", "activate_resource", identity, ok=lambda secret: secret["secretKey"])
        self.call("S", "impersonate_resource", name)
        self.call("S", "get_resource_impersonation", name, ok=lambda found: found["allowImpersonation"] is True)
        role = f"Access to {name}"
        self.call("M", "get_access_roles", ok=bool)
        self.call("M", "get_access_role", role, ok=lambda found: found["accessRoleMembers"]["users"] == [])
        self.call("M", "add_partition_to_access_role", role, partition)
        self.call("M", "add_user_to_access_role", role, f"ann@{partition}")
        self.call(
            "M", "add_user_to_access_role", role, f"ann@{partition}", ok=lambda done: done and WIRE[-1][0] == "GET"
        )
        self.call("M", "add_group_to_access_role", role, "staff", f"{self.location('get_group', f'staff@{partition}')}")
        self.call("M", "add_group_to_access_role", role, "staff", ok=lambda done: done and WIRE[-1][0] == "GET")
        pushed = [{"name": "pushAllGroups", "values": ["True"]}]
        self.call("S", "update_access_role_attributes", role, pushed, ok=lambda found: found["attributeList"] == pushed)
        self.call("S", "add_oauth_clients_to_access_role", role, ok=lambda response: response.ok)
        self.call("T", "consolidate", name)
        ticket = self.client._otds_ticket
        if ASKED["mode"] == "ticket":
            self.call(
                "S",
                "get_ticket_for_resource",
                ticket,
                ASKED["administration"],
                ok=lambda given: given["ticket"] and given["resourceID"],
            )
            self.call("S", "impersonate_user", "ann", partition, ok=lambda given: given["ticket"])
        else:
            # Whoever signs in with no client may act for nobody.
            self.call("S", "impersonate_user", "ann", partition, ok=lambda given: not given)
            self.call(
                "S",
                "get_ticket_for_resource",
                ASKED["ticket"],
                ASKED["administration"],
                ok=lambda given: given["ticket"],
            )
        self.call("M", "add_user_to_group", identity, f"{ASKED['administrators']}")
        self.call("M", "deactivate_resource", ASKED["identity"], ASKED["secret"], ASKED["secret"])
        for each in (name, f"Preset {self.word}"):
            self.call("M", "delete_resource", each)

    def location(self, method: str, name: str) -> str:
        found = getattr(self.client, method)(name)
        return str(found["location"]) if found else ""

    def clients(self) -> None:
        client = f"client-{self.word}"
        self.call("M", "add_oauth_client", client, "D", redirect_urls=["https://a/"], ok=lambda made: made["secret"])
        self.call(
            "M",
            "get_oauth_client",
            client,
            ok=lambda found: found["id"] == client and found["accessTokenLifeTime"] == 1000,
        )
        self.call(
            "M", "update_oauth_client", client, {"description": "New"}, ok=lambda found: found["description"] == "New"
        )
        self.call("M", "update_user", ASKED["clients"], f"{client}@{ASKED['clients']}", "oTType", "ServiceUser")
        self.call("M", "get_oauth_clients", where_filter=client, ok=lambda page: len(page["clients"]) == 1)
        self.call(
            "M", "get_oauth_clients_iterator", page_size=1, ok=lambda every: client in [each["id"] for each in every]
        )
        self.call("S", "impersonate_oauth_client", client, allow_impersonation=False)
        self.call("S", "get_oauth_client_impersonation", client, ok=lambda found: found["allowImpersonation"] is False)
        self.call("M", "delete_oauth_client", client)

    def system(self) -> None:
        self.call("M", "get_trusted_sites", ok=lambda found: isinstance(found["stringList"], list))
        self.call("M", "add_trusted_site", f"https://{self.word}/.*", ok=lambda response: response.ok)
        self.call("S", "update_password_policy", {"minimumNumberOfCharacters": 9})
        self.call("S", "get_password_policy", ok=lambda found: found["minimumNumberOfCharacters"] == 9)
        self.call("T", "enable_audit", ok=lambda response: response.ok)
        self.call("T", "get_auth_handler", "walk", ok=lambda found: found["_name"] == "walk")

    def what_is_not_offered(self) -> None:
        file = tempfile.NamedTemporaryFile("w", suffix=".lic")  # noqa: SIM115 - it is to be there as long as the walk
        identity, partition = ASKED["administration"], self.word
        self.call("O", "add_auth_handler_saml", "x", "", None, "p", "https://a", "https://b")
        self.call("O", "add_auth_handler_sap", "x", "", None, file.name, "p")
        self.call("O", "add_auth_handler_oauth", "x", "", None, "p", "c", "s")
        self.call("O", "add_synchronized_partition", "x", "", {})
        self.call("O", "import_synchronized_partition_members", "x")
        self.call("O", "add_license_to_resource", file.name, "p", "d", identity)
        self.call("O", "get_license_for_resource", identity)
        self.call("O", "delete_license_from_resource", identity, "x")
        self.call("O", "assign_user_to_license", partition, "ann", identity, "f", "l")
        self.call("O", "assign_partition_to_license", partition, identity, "f", "l")
        for method in ("get_licensed_objects", "is_user_licensed", "is_group_licensed", "is_partition_licensed"):
            self.call("O", method, *(() if method == "get_licensed_objects" else ("x",)), identity, "f", "l")

    def the_end(self) -> None:
        self.call("M", "delete_user", self.word, "ann", ok=done_or_silent)
        if ASKED["mode"] == "bearer":
            self.call("M", "get_access_token_info", ASKED["administration"], ok=lambda found: found["user"])
            self.call("M", "revoke_access_token")


def main() -> None:
    """Walk."""
    ASKED.update(json.load(sys.stdin))
    otds = load()
    watch()
    more = {key: ASKED[key] for key in ("username", "password", "oauth_token") if key in ASKED}
    client = otds.OTDS("https", "127.0.0.1", ASKED["port"], **more)
    walk = Walk(client)
    with contextlib.redirect_stdout(sys.stderr):
        walk.sign_in()
        walk.people()
        walk.resources()
        walk.clients()
        walk.system()
        walk.what_is_not_offered()
        walk.the_end()
    print(json.dumps(RESULTS))


if __name__ == "__main__":
    main()

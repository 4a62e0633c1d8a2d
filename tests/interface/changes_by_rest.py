"""A right change at each address of the directory by REST that tells of one, in an order in which none is left."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from muniment.directory.entries import names as spelling
from muniment.directory.options import DirectoryNames


class Step(NamedTuple):
    """A change by REST, and what the event names. ``parts`` stand in the path in place of the usual ones."""

    method: str
    path: str
    on: str
    body: dict[str, Any] | None = None
    parts: Mapping[str, str] = MappingProxyType({})


def _changed(path: str, on: str, *verbs: str) -> tuple[Step, ...]:
    return tuple(Step(verb, path, on, {"description": f"By {verb}."}) for verb in verbs)


def _in_and_out(on: str, **others: str) -> tuple[Step, ...]:
    path = f"/{on}s/{{{on}}}/"
    return tuple(
        Step("POST", f"{path}{part}{end}", f"{{{on}}}", {"stringList": [other] if other else []})
        for part, other in others.items()
        for end in ("", "/deletionset")
    )


def _new(name: str, **more: str) -> dict[str, Any]:
    return {"userPartitionID": "seminar", "name": name, **more}


USER, GROUP, ROLE = "ada@seminar", "choir@seminar", "tutor@seminar"
SECTION, AUDITOR = "altos@seminar", "auditor@seminar"
NO_GROUP_HOLDS_ROLES = ""
CUSTOM = {"customAttributeList": [{"type": "t", "name": "n", "value": "v"}]}
STEPS: dict[str, tuple[Step, ...]] = {
    "user or group": (
        *(
            step
            for path in ("/partition", "/partitions")
            for step in (
                Step("POST", path, "{partition}", {"name": "seminar"}),
                *_changed(f"{path}/{{partition}}", "{partition}", "PUT", "PATCH"),
                Step("DELETE", f"{path}/{{partition}}", "{partition}"),
            )
        ),
        Step("POST", "/partitions", "{partition}", {"name": "seminar"}),
        Step("POST", "/orgunits", "{unit}", _new("desk")),
        *_changed("/orgunits/{unit}", "{unit}", "PUT", "PATCH"),
        Step("DELETE", "/orgunits/{unit}", "{unit}"),
        Step("POST", "/users", "{user}", _new("ada")),
        *_changed("/users/{user}", "{user}", "PUT", "PATCH"),
        Step("PUT", "/users/{user}/password", "{user}", {"newPassword": "Correct-Horse-42"}),
        Step("POST", "/groups", "{group}", _new("choir")),
        *_changed("/groups/{group}", "{group}", "PUT", "PATCH"),
        Step("POST", "/groups/subgroup", SECTION, _new("altos", parentId=GROUP)),
        Step("POST", "/groups/{group}/groups/deletionset", "{group}", {"stringList": [SECTION]}),
        Step("POST", "/roles", AUDITOR, _new("auditor")),
        Step("POST", "/roles", "{role}", _new("tutor")),
        *_changed("/roles/{role}", "{role}", "PUT", "PATCH"),
        Step("POST", "/roles/{role}/attribute", "{role}", CUSTOM),
        Step("POST", "/roles/{role}/attribute/deletionset", "{role}", CUSTOM),
        *_in_and_out("user", memberof=GROUP, roles=ROLE),
        *_in_and_out("group", memberof=SECTION, roles=ROLE, members=USER, users=USER, groups=SECTION),
        *_in_and_out("role", memberof=NO_GROUP_HOLDS_ROLES, roles=AUDITOR, members=USER, users=USER, groups=GROUP),
        *(Step("DELETE", f"/{kind}s/{{{kind}}}", f"{{{kind}}}") for kind in ("user", "group", "role")),
        Step("DELETE", "/groups/{group}", SECTION, parts={"group": SECTION}),
        Step("DELETE", "/roles/{role}", AUDITOR, parts={"role": AUDITOR}),
        Step("DELETE", "/partitions/{partition}", "{partition}"),
    ),
    "resource": (
        Step("POST", "/resources", "{resource}", {"resourceName": "Choir book"}),
        *_changed("/resources/{resource}", "{resource}", "PUT"),
        Step("PUT", "/resources/{resource}/status", "{resource}", {"isAuthenticationEnabled": True}),
        Step("PUT", "/resources/{resource}/impersonation", "{resource}", {"allowImpersonation": True}),
        *_changed("/accessroles/{access_role}", "{access_role}", "PUT"),
        Step("PUT", "/accessroles/{access_role}/attributes", "{access_role}", {"attributes": [{"name": "n"}]}),
        *(
            Step(
                "POST",
                f"/accessroles/{{access_role}}/members{end}",
                "{access_role}",
                {"groups": [{"name": "writers@demo"}]},
            )
            for end in ("", "/deletionset")
        ),
        Step("DELETE", "/resources/{resource}", "{resource}"),
    ),
    "oauth client": (
        Step("POST", "/oauthclients", "{client}", {"id": "choir-app"}),
        *_changed("/oauthclients/{client}", "{client}", "PUT", "PATCH"),
        Step("PUT", "/oauthclients/{client}/impersonation", "{client}", {"allowImpersonation": True}),
        Step("DELETE", "/oauthclients/{client}", "{client}"),
    ),
    "system attribute": (
        Step("POST", "/systemconfig/system_attributes", "{attribute}", {"name": "choir.X", "value": "hidden-value"}),
        Step("PUT", "/systemconfig/system_attributes/{attribute}", "{attribute}", {"value": "another"}),
        Step("DELETE", "/systemconfig/system_attributes/{attribute}", "{attribute}"),
    ),
    "system configuration": (
        Step("PUT", "/systemconfig/whitelist", "trusted sites", {"stringList": []}),
        Step("PUT", "/systemconfig/passwordpolicy", "password policy", {}),
        Step("PUT", "/systemconfig/audit", "audit", {}),
    ),
}


def parts(names: DirectoryNames) -> dict[str, str]:
    """Name what the changes are about, as the directory spells it."""
    return {
        "partition": "seminar",
        "unit": spelling.location(names, "seminar", ("desk",)),
        "user": USER,
        "group": GROUP,
        "role": ROLE,
        "resource": "Choir book",
        "access_role": "Access to Choir book",
        "client": "choir-app",
        "attribute": "choir.X",
    }

"""Right requests for the directory by REST, for both dialects: either spelling of a body's keys is read in either.

What they name may be changed or deleted: it is on the stage for these requests. The partition, the resource and the
client that the stage needs are never among it, nor is who administers.
"""

from collections.abc import Mapping

from tests.campaign.json_bodies import Json
from tests.campaign.stage import SECRET, Prop

_NEW = {"userPartitionID": Prop.HOME, "name": Prop.NEW}
_CHANGED = {"description": "changed"}
_COLOUR = {"customAttributeList": [{"type": "text", "name": "colour", "value": "red"}]}
_MEMBERS = {"users": [{"name": Prop.NEWCOMER}]}
_SWITCH = {"allowImpersonation": False}
_ADMITTED: Mapping[str, str] = {
    "/users/{user}/memberof": Prop.GROUP,
    "/users/{user}/roles": Prop.ROLE,
    "/groups/{group}/members": Prop.NEWCOMER,
    "/groups/{group}/users": Prop.NEWCOMER,
    "/groups/{group}/groups": Prop.INNER_GROUP,
    "/groups/{group}/roles": Prop.ROLE,
    "/groups/{group}/memberof": Prop.GROUP,
    "/roles/{role}/members": Prop.NEWCOMER,
    "/roles/{role}/users": Prop.NEWCOMER,
    "/roles/{role}/groups": Prop.GROUP,
    "/roles/{role}/roles": Prop.INNER_ROLE,
    "/roles/{role}/memberof": Prop.GROUP,
}
"""Who or what is put into a list, and taken out of it."""

BODIES: Mapping[str, tuple[Json, ...]] = {
    "POST /authentication/credentials": ({"userName": Prop.USER, "password": Prop.PASSWORD},),
    **{
        f"POST /authentication{between}/ticketforuser": ({"ticket": Prop.ADMIN_TICKET, "userName": Prop.USER},)
        for between in ("", "/resource")
    },
    **{
        f"POST /authentication{between}/ticketforresource": (
            {"ticket": Prop.TICKET, "targetResourceId": Prop.RESOURCE},
        )
        for between in ("", "/resource")
    },
    "POST /authentication/resource/validation": (
        {"ticket": Prop.TARGET_TICKET, "sourceResourceId": Prop.ADDED_RESOURCE, "secureSecret": SECRET},
    ),
    "POST /users": ({**_NEW, "values": [{"name": "mail", "values": ["new@example.org"]}]},),
    "POST /users/search": ({"partitionName": Prop.HOME, "state": "disabled"}, {"filter": "camp"}),
    "PUT /users/{user}/password": ({"newPassword": "correct horse battery"},),
    "PUT /users/{user}/twofactorstate": ({"enabled": False},),
    "POST /groups": (_NEW,),
    "POST /groups/subgroup": ({**_NEW, "parentId": Prop.GROUP},),
    "POST /roles": (_NEW,),
    "POST /orgunits": (_NEW,),
    "POST /partitions": ({"name": Prop.NEW, "description": "x"},),
    "POST /partition": ({"name": Prop.NEW},),
    **{
        f"{method} {path}": (_CHANGED, {"name": Prop.NEW})
        for method in ("PUT", "PATCH")
        for path in (
            "/users/{user}",
            "/groups/{group}",
            "/roles/{role}",
            "/orgunits/{unit}",
            "/partitions/{partition}",
            "/partition/{partition}",
        )
    },
    **{
        f"POST {path}{end}": ({"stringList": [word]},)
        for path, word in _ADMITTED.items()
        for end in ("", "/deletionset")
    },
    "POST /roles/{role}/attribute": (_COLOUR,),
    "POST /roles/{role}/attribute/deletionset": (_COLOUR,),
    "POST /resources": ({"resourceName": Prop.NEW, "description": "Old papers", "secretKey": SECRET},),
    "PUT /resources/{resource}": ({"displayName": "The archive", "logoutURL": "https://archive.example/out"},),
    "POST /resources/{resource}/deactivate": ({"secureSecret": SECRET},),
    "POST /resources/{resource}/people": (
        {"secureSecret": SECRET, "question": {"type": "find", "kind": "user", "id": Prop.USER}},
        {"secureSecret": SECRET, "question": {"type": "page", "kind": "group", "limit": 2}},
    ),
    "PUT /resources/{resource}/status": ({"isAuthenticationEnabled": True}, {"isAuthenticationEnabled": False}),
    "PUT /resources/{resource}/impersonation": ({"allowImpersonation": True, "impersonateList": [Prop.NEWCOMER]},),
    "PUT /accessroles/{access_role}": ({**_CHANGED, "accessRoleMembers": _MEMBERS},),
    "POST /accessroles/{access_role}/members": (_MEMBERS, {"userPartitions": [{"name": Prop.HOME, "location": ""}]}),
    "POST /accessroles/{access_role}/members/deletionset": (_MEMBERS,),
    "PUT /accessroles/{access_role}/attributes": ({"attributes": [{"name": "pushAllGroups", "values": ["True"]}]},),
    "POST /oauthclients": ({"id": Prop.NEW, "description": "Loads users", "accessTokenLifeTime": 900},),
    "PATCH /oauthclients/{client}": ({"authScopes": [Prop.HOME]}, _CHANGED),
    "PUT /oauthclients/{client}": ({"allowRefreshToken": False}, _CHANGED),
    "PUT /oauthclients/{client}/impersonation": (_SWITCH,),
    "POST /systemconfig/system_attributes": ({"name": Prop.NEW, "value": "1", "friendlyName": "Of the campaign"},),
    "PUT /systemconfig/system_attributes/{attribute}": ({"value": "2"},),
    "PUT /systemconfig/whitelist": ({"stringList": ["https://archive.example/.*"]},),
    "PUT /systemconfig/passwordpolicy": ({"minimumNumberOfCharacters": 8},),
    "PUT /systemconfig/audit": ({"daysToKeep": "7", "enabled": True, "eventIDs": ["User Create"]},),
    "POST /consolidation": ({"objectToConsolidate": Prop.UNIT, "resourceList": []},),
}
"""By method and by what comes after ``rest`` or ``v1``."""

PLACES: Mapping[str, str] = {
    "{user}": Prop.NEWCOMER,
    "{group}": Prop.GROUP,
    "{role}": Prop.ROLE,
    "{unit}": Prop.UNIT,
    "{partition}": Prop.PARTITION,
    "{resource}": Prop.ADDED_RESOURCE,
    "{access_role}": Prop.ADDED_ACCESS,
    "{client}": Prop.ADDED_CLIENT,
    "{attribute}": Prop.ATTRIBUTE,
    "{handler}": "saml",
    "{entry}": Prop.UNIT,
}
"""What stands in a path."""

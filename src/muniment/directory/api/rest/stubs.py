"""Answer calls of the field for what this directory does not have, so that programs go on. Each call is logged."""

from typing import Any

import msgspec
import structlog
from starlette.responses import Response

from muniment.directory.api.rest.calls import Call, Method, Row
from muniment.directory.api.rest.dialect import spelled
from muniment.ground import events

log = structlog.get_logger("muniment.rest")


@spelled(
    rest={name: f"_{name}" for name in ("name", "id", "description", "enabled", "priority", "properties")}
    | {"auth_principal_attr_names": "_authPrincipalAttrNames", "credential_based": "_credentialBased"},
    v1={name: f"_{name}" for name in ("name", "id", "description", "enabled", "priority", "properties")}
    | {"auth_principal_attr_names": "_auth_principal_attr_names", "credential_based": "_credential_based"},
)
class OtherSignIn(msgspec.Struct):
    """A way of signing in that this directory does not have: it is never enabled."""

    name: str
    id: str
    description: str
    enabled: bool = False
    priority: str = "0"
    auth_principal_attr_names: list[str] = []
    credential_based: bool = False
    properties: list[dict[str, Any]] = []


class OtherSignIns(msgspec.Struct):
    """The ways of signing in of other systems: there are none."""

    auth_handlers: list[OtherSignIn] = []


@spelled(rest={"licenses": "_licenses"}, v1={"licenses": "_licenses"})
class LicenseObjects(msgspec.Struct):
    """Licences: there are none."""

    licenses: list[dict[str, Any]] = []


class Licenses(msgspec.Struct):
    """Licences: this directory counts none."""

    license_objects: LicenseObjects


class Consolidation(msgspec.Struct, kw_only=True):
    """What to hand to resources again."""

    object_to_consolidate: str = ""
    resource_list: list[str] = []


async def auth_handlers(call: Call) -> Response:
    """List the ways of signing in of other systems, of which there are none."""
    await _note(call, "authhandlers")
    return call.answer(OtherSignIns())


async def auth_handler(call: Call) -> Response:
    """Show a way of signing in that is not there: a stub, which is never enabled."""
    await _note(call, "authhandlers")
    name = call.part("handler")
    return call.answer(OtherSignIn(name, name, "A stub: this directory has no further ways of signing in."))


async def licenses(call: Call) -> Response:
    """List licences, of which there are none."""
    await _note(call, "licensemanagement")
    return call.answer(Licenses(LicenseObjects()))


@events.tells()
async def consolidate(call: Call) -> Response:
    """Take a wish to hand entries to resources again: resources read the directory, so nothing is to be done."""
    await call.body(Consolidation)
    await _note(call, "consolidation")
    return call.done()


async def _note(call: Call, what: str) -> None:
    await call.require()
    log.info("stub answered", stub=what, method=call.request.method)


ROWS = (
    Row("/authhandlers", {"GET": Method(auth_handlers, OtherSignIns)}),
    Row("/authhandlers/{handler}", {"GET": Method(auth_handler, OtherSignIn)}),
    Row("/licensemanagement/licenses", {"GET": Method(licenses, Licenses)}),
    Row("/licensemanagement/licenses/assignedlicenses", {"GET": Method(licenses, Licenses)}),
    Row("/licensemanagement/licenses/object/{entry}", {"GET": Method(licenses, Licenses)}),
    Row("/consolidation", {"POST": Method(consolidate, body=Consolidation)}),
)

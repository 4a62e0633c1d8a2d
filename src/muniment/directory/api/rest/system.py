"""The configuration of the directory itself: system attributes, trusted sites, the password policy, the audit.

The directory reads the system attributes that it knows (``entries.system``). The other three are kept and shown.
"""

from typing import Any

import msgspec
from sqlalchemy.engine import Connection
from starlette.responses import Response

from muniment.directory import version_stamps
from muniment.directory.api.rest import dialect
from muniment.directory.api.rest.callers import Caller
from muniment.directory.api.rest.calls import Call, Method, Row
from muniment.directory.api.rest.dialect import spelled
from muniment.directory.api.rest.entry_objects import StringList
from muniment.directory.entries import configurations, system
from muniment.directory.entries.configurations import AuditSettings, PasswordPolicy, TrustedSites
from muniment.directory.options import DirectoryOptions
from muniment.directory.refusals import BadAttribute, NameTaken, UnknownAttribute
from muniment.ground import events
from muniment.ground.clock import Instant
from muniment.ground.naming import fold_name
from muniment.ground.refusals import Malformed
from muniment.web.answers.responses import ErrorCode, Table


class SystemAttributeObject(msgspec.Struct, kw_only=True):
    """A system attribute."""

    name: str
    value: str
    friendly_name: str


class SystemAttributeList(msgspec.Struct, kw_only=True):
    """Every system attribute."""

    attributes: list[SystemAttributeObject]


class WrittenSystemAttribute(msgspec.Struct, kw_only=True):
    """A new system attribute, or a new value of one."""

    name: str = ""
    value: str = ""
    friendly_name: str | msgspec.UnsetType = msgspec.UNSET


class WrittenTrustedSites(msgspec.Struct):
    """All trusted sites from now on."""

    string_list: list[str] | msgspec.UnsetType = msgspec.UNSET


_AN = {"max_number_of_consecutive_an_chars_in_password": "maxNumberOfConsecutiveANCharsInPassword"}


@spelled(_AN)
class PasswordPolicyObject(msgspec.Struct, kw_only=True):
    """The password policy. It is kept and shown; what holds today is in docs/settings.md."""

    password_history_maximum_count: int
    days_before_new_password_may_be_changed: int
    password_maximum_duration: int
    days_before_old_password_may_be_reused: int
    lockout_failure_count: int
    lockout_duration: int
    minimum_number_of_characters: int
    complex_password_validation_enabled: bool
    minimum_number_of_digits: int
    minimum_number_of_symbols: int
    minimum_number_of_uppercase: int
    minimum_number_of_lowercase: int
    minimum_changes_to_previous_password: int
    max_number_of_consecutive_an_chars_in_password: int
    block_common_password: bool


@spelled(_AN)
class WrittenPasswordPolicy(msgspec.Struct, kw_only=True):
    """What is to change of the password policy. 0 turns a rule off."""

    password_history_maximum_count: int | msgspec.UnsetType = msgspec.UNSET
    days_before_new_password_may_be_changed: int | msgspec.UnsetType = msgspec.UNSET
    password_maximum_duration: int | msgspec.UnsetType = msgspec.UNSET
    days_before_old_password_may_be_reused: int | msgspec.UnsetType = msgspec.UNSET
    lockout_failure_count: int | msgspec.UnsetType = msgspec.UNSET
    lockout_duration: int | msgspec.UnsetType = msgspec.UNSET
    minimum_number_of_characters: int | msgspec.UnsetType = msgspec.UNSET
    complex_password_validation_enabled: bool | msgspec.UnsetType = msgspec.UNSET
    minimum_number_of_digits: int | msgspec.UnsetType = msgspec.UNSET
    minimum_number_of_symbols: int | msgspec.UnsetType = msgspec.UNSET
    minimum_number_of_uppercase: int | msgspec.UnsetType = msgspec.UNSET
    minimum_number_of_lowercase: int | msgspec.UnsetType = msgspec.UNSET
    minimum_changes_to_previous_password: int | msgspec.UnsetType = msgspec.UNSET
    max_number_of_consecutive_an_chars_in_password: int | msgspec.UnsetType = msgspec.UNSET
    block_common_password: bool | msgspec.UnsetType = msgspec.UNSET


@spelled({"event_ids": "eventIDs"})
class AuditObject(msgspec.Struct, kw_only=True):
    """What programs of the field ask of the audit. It is kept and shown; this directory records every change always."""

    days_to_keep: str = "0"
    enabled: bool = True
    audit_to: str = "DATABASE"
    event_ids: list[str] = []


@spelled({"event_ids": "eventIDs"})
class WrittenAudit(msgspec.Struct, kw_only=True):
    """What is to change of what is asked of the audit."""

    days_to_keep: int | msgspec.UnsetType = msgspec.UNSET
    enabled: bool | msgspec.UnsetType = msgspec.UNSET
    audit_to: str | msgspec.UnsetType = msgspec.UNSET
    event_ids: list[str] | msgspec.UnsetType = msgspec.UNSET


async def list_attributes(call: Call) -> Response:
    """List the system attributes."""
    found = await call.read(lambda cx, _: system.all_system_attributes(cx))
    return call.answer(SystemAttributeList(attributes=[_shown_attribute(each) for each in found]))


@events.tells("system attribute")
async def add_attribute(call: Call) -> Response:
    """Add a system attribute."""
    body = await call.body(WrittenSystemAttribute)
    attribute = await call.write(_add_attribute, body, call.now)
    call.on(attribute.name)
    return call.answer(attribute, 201)


async def show_attribute(call: Call) -> Response:
    """Show a system attribute."""
    return call.answer(await call.read(_show_attribute, call.part("attribute")))


@events.tells("system attribute")
async def change_attribute(call: Call) -> Response:
    """Give a system attribute a value, or add it."""
    body = await call.body(WrittenSystemAttribute)
    attribute = await call.write(_change_attribute, call.part("attribute"), body, call.now)
    call.on(attribute.name)
    return call.answer(attribute)


@events.tells("system attribute")
async def remove_attribute(call: Call) -> Response:
    """Remove a system attribute: what it decided is as by default."""
    call.on(await call.write(_remove_attribute, call.part("attribute")))
    return call.done()


async def show_trusted_sites(call: Call) -> Response:
    """Show the trusted sites: regular expressions for the addresses to which a sign-in may lead."""
    sites = await call.read(lambda cx, _: configurations.find(cx, TrustedSites) or TrustedSites())
    return call.answer(StringList(list(sites.patterns)))


@events.tells("system configuration")
async def set_trusted_sites(call: Call) -> Response:
    """Replace all trusted sites."""
    body = await call.body(WrittenTrustedSites)
    await call.write(_set_trusted_sites, call, body, call.now)
    call.on("trusted sites")
    return call.done()


async def show_password_policy(call: Call) -> Response:
    """Show the password policy."""
    return call.answer(await call.read(_show_password_policy, call.directory.options))


@events.tells("system configuration")
async def set_password_policy(call: Call) -> Response:
    """Change the rules of the password policy that the body names."""
    body = await call.body(WrittenPasswordPolicy)
    policy = await call.write(_set_password_policy, call.directory.options, body, call.now)
    call.on("password policy")
    return call.answer(policy)


async def show_audit(call: Call) -> Response:
    """Show what was asked of the audit."""
    return call.answer(_shown_audit(await call.read(lambda cx, _: configurations.find(cx, AuditSettings))))


@events.tells("system configuration")
async def set_audit(call: Call) -> Response:
    """Keep what is asked of the audit, which records every change in any case."""
    body = await call.body(WrittenAudit)
    audit = await call.write(_set_audit, body, call.now)
    call.on("audit")
    return call.answer(audit)


def _shown_attribute(attribute: system.SystemAttribute) -> SystemAttributeObject:
    return SystemAttributeObject(name=attribute.name, value=attribute.value, friendly_name=attribute.friendly_name)


def _find_attribute(cx: Connection, name: str) -> system.SystemAttribute:
    """Raises UnknownAttribute."""
    attribute = system.find(cx, name)
    if attribute is None:
        raise UnknownAttribute(f"There is no system attribute {name[:100]!r}.")
    return attribute


def _show_attribute(cx: Connection, _: Caller, name: str) -> SystemAttributeObject:
    return _shown_attribute(_find_attribute(cx, name))


def _add_attribute(cx: Connection, _: Caller, body: WrittenSystemAttribute, now: Instant) -> SystemAttributeObject:
    if system.find(cx, body.name) is not None:
        raise NameTaken(f"There is a system attribute {body.name.strip()[:100]!r} already.")
    return _put_attribute(cx, body.name, body, now)


def _change_attribute(
    cx: Connection, _: Caller, name: str, body: WrittenSystemAttribute, now: Instant
) -> SystemAttributeObject:
    if body.name and fold_name(body.name.strip()) != fold_name(name.strip()):
        raise BadAttribute("A system attribute keeps its name: the body names another one than the address.")
    return _put_attribute(cx, name, body, now)


def _put_attribute(cx: Connection, name: str, body: WrittenSystemAttribute, now: Instant) -> SystemAttributeObject:
    friendly_name = None if body.friendly_name is msgspec.UNSET else body.friendly_name
    system.put(cx, name, body.value, now, free=True, friendly_name=friendly_name)
    return _shown_attribute(_find_attribute(cx, name))


def _remove_attribute(cx: Connection, _: Caller, name: str) -> str:
    attribute = _find_attribute(cx, name)
    system.remove(cx, name)
    return attribute.name


def _set_trusted_sites(cx: Connection, _: Caller, call: Call, body: WrittenTrustedSites, now: Instant) -> None:
    if body.string_list is msgspec.UNSET:
        raise Malformed(f"The body has no {dialect.key(call.dialect, WrittenTrustedSites, 'string_list')}.")
    configurations.put(cx, TrustedSites(tuple(body.string_list)), now)


def _policy(cx: Connection, options: DirectoryOptions) -> PasswordPolicy:
    """Before one was set, it says what the settings do."""
    holding = PasswordPolicy(
        lockout_failure_count=options.lockout_failures, lockout_duration=-(-options.lockout_seconds // 60)
    )
    return configurations.find(cx, PasswordPolicy) or holding


def _show_password_policy(cx: Connection, _: Caller, options: DirectoryOptions) -> PasswordPolicyObject:
    return PasswordPolicyObject(**msgspec.structs.asdict(_policy(cx, options)))


def _set_password_policy(
    cx: Connection, caller: Caller, options: DirectoryOptions, body: WrittenPasswordPolicy, now: Instant
) -> PasswordPolicyObject:
    version_stamps.lock_rights(cx)
    configurations.put(cx, msgspec.structs.replace(_policy(cx, options), **_given(body)), now)
    return _show_password_policy(cx, caller, options)


def _set_audit(cx: Connection, _: Caller, body: WrittenAudit, now: Instant) -> AuditObject:
    version_stamps.lock_rights(cx)
    changes = _given(body)
    if "event_ids" in changes:
        changes["event_ids"] = tuple(changes["event_ids"])
    new = msgspec.structs.replace(configurations.find(cx, AuditSettings) or AuditSettings(), **changes)
    configurations.put(cx, new, now)
    return _shown_audit(new)


def _shown_audit(audit: AuditSettings | None) -> AuditObject:
    audit = audit or AuditSettings()
    return AuditObject(
        days_to_keep=str(audit.days_to_keep),
        enabled=audit.enabled,
        audit_to=audit.audit_to,
        event_ids=list(audit.event_ids),
    )


def _given(body: WrittenPasswordPolicy | WrittenAudit) -> dict[str, Any]:
    written = msgspec.structs.asdict(body)
    return {name: value for name, value in written.items() if value is not msgspec.UNSET}


_WRONG: Table = {BadAttribute: ErrorCode(400, "bad_attribute")}

ROWS = (
    Row(
        "/systemconfig/system_attributes",
        {
            "GET": Method(list_attributes, SystemAttributeList),
            "POST": Method(add_attribute, SystemAttributeObject, status=201, body=WrittenSystemAttribute),
        },
        {**_WRONG, NameTaken: ErrorCode(409, "name_taken")},
    ),
    Row(
        "/systemconfig/system_attributes/{attribute}",
        {
            "GET": Method(show_attribute, SystemAttributeObject),
            "PUT": Method(change_attribute, SystemAttributeObject, body=WrittenSystemAttribute),
            "DELETE": Method(remove_attribute),
        },
        {**_WRONG, UnknownAttribute: ErrorCode(404, "unknown_attribute")},
    ),
    Row(
        "/systemconfig/whitelist",
        {"GET": Method(show_trusted_sites, StringList), "PUT": Method(set_trusted_sites, body=WrittenTrustedSites)},
        _WRONG,
    ),
    Row(
        "/systemconfig/passwordpolicy",
        {
            "GET": Method(show_password_policy, PasswordPolicyObject),
            "PUT": Method(set_password_policy, PasswordPolicyObject, body=WrittenPasswordPolicy),
        },
        _WRONG,
    ),
    Row(
        "/systemconfig/audit",
        {"GET": Method(show_audit, AuditObject), "PUT": Method(set_audit, AuditObject, body=WrittenAudit)},
        _WRONG,
    ),
)

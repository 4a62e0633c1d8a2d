"""Commands about protected resources and who is in their access roles."""

from typing import Annotated

import typer
from sqlalchemy.engine import Connection

from muniment.cli.directory.entries import (
    ENTRY_HEADS,
    Description,
    Force,
    NewDescription,
    NewName,
    describe_ended,
    entry_rows,
    find_entry,
    repository_snapshot,
)
from muniment.cli.running import Group, Rows
from muniment.directory.administration import resource_decisions
from muniment.directory.entries import resources
from muniment.installation.data_folder import DataFolder
from muniment.integration import guards

resource_commands = Group("directory", help="Protected APIs and who is in their access roles.")

ResourceName = Annotated[str, typer.Argument(metavar="NAME", help="The resource's name or its identifier.")]
Members = Annotated[list[str], typer.Argument(metavar="ENTRY...", help="name@partition, a partition, or a location.")]


@resource_commands.writes("add")
def add_resource(
    data: DataFolder,
    cx: Connection,
    name: Annotated[str, typer.Argument(metavar="NAME")],
    description: Description = "",
) -> str:
    """Register a protected API with its access role and the user who stands for it, and print its identifier."""
    names = data.settings.directory.names
    return resource_decisions.add_resource(cx, names, name, data.now, description=description).id


@resource_commands.writes("activate")
def activate_resource(data: DataFolder, cx: Connection, name: ResourceName) -> str:
    """Activate a resource and print its secret key. A resource is activated once, and its key is shown once."""
    return resources.activate(cx, _resource(data, cx, name).id, data.now)


@resource_commands.reads("list", "Resource", "Identifier", "State", "Description")
def list_resources(data: DataFolder, cx: Connection) -> Rows:
    """List the resources."""
    names = data.settings.directory.names
    return [
        (
            resources.shown_name(names, each),
            each.id,
            "created" if each.activated is None else "activated",
            each.description,
        )
        for each in resources.all_resources(cx)
    ]


@resource_commands.writes("set")
def set_resource(
    data: DataFolder,
    cx: Connection,
    name: ResourceName,
    description: NewDescription = None,
    address: Annotated[
        str | None, typer.Option("--address", help="The URL by which clients may ask for it; empty for none.")
    ] = None,
    token_format: Annotated[
        str | None,
        typer.Option("--tokens", help="opaque, or signed by RS256 or ES256; another ends its grants."),
    ] = None,
    token_seconds: Annotated[
        int | None, typer.Option("--token-seconds", help="How long a signed token lives; 300 if not set.")
    ] = None,
) -> str | None:
    """Set the description of a resource, its address, or of which form its access tokens are."""
    target = _resource(data, cx, name)
    if description is not None:
        resources.change(cx, target, description=description)
    if address is None and token_format is None and token_seconds is None:
        return None
    snapshot = repository_snapshot(data)
    return describe_ended(
        resource_decisions.set_tokens(
            *(cx, target, data.now),
            address=target.address if address is None else address or None,
            token_format=token_format or target.token_format,
            token_seconds=token_seconds or target.token_seconds,
            check=lambda cx, resource: guards.check_tokens(cx, snapshot, resource),
        )
    )


@resource_commands.writes("rename")
def rename_resource(data: DataFolder, cx: Connection, name: ResourceName, new_name: NewName) -> None:
    """Rename a resource. It must have no living grants, because clients ask for its name as scope. Its id stays."""
    names = data.settings.directory.names
    resource_decisions.rename_resource(cx, names, _resource(data, cx, name), new_name, data.now)


@resource_commands.reads("members", *ENTRY_HEADS)
def list_role(data: DataFolder, cx: Connection, name: ResourceName) -> Rows:
    """List who is in a resource's access role."""
    return entry_rows(data, resources.role_members(cx, _resource(data, cx, name)))


@resource_commands.writes("add-member")
def add_to_role(data: DataFolder, cx: Connection, name: ResourceName, members: Members) -> None:
    """Add users, groups, units or partitions to a resource's access role."""
    target = _resource(data, cx, name)
    for member in members:
        resources.add_to_role(cx, target, find_entry(data, cx, member))


@resource_commands.writes("remove-member")
def remove_from_role(data: DataFolder, cx: Connection, name: ResourceName, members: Members) -> None:
    """Remove entries from a resource's access role. Tokens of users who are not in it any more give no access."""
    target = _resource(data, cx, name)
    for member in members:
        resource_decisions.remove_from_role(cx, target, find_entry(data, cx, member))


@resource_commands.writes("remove")
def remove_resource(data: DataFolder, cx: Connection, name: ResourceName, force: Force = False) -> str:
    """Remove a resource that guards no repository; its sessions end."""
    snapshot = repository_snapshot(data)
    target = _resource(data, cx, name)
    members = resources.role_members(cx, target)
    sessions_ended = guards.remove_resource(cx, snapshot, target, data.now, force=force)
    return f"Its access role had {len(members)} members. {describe_ended(sessions_ended)}"


def _resource(data: DataFolder, cx: Connection, text: str) -> resources.Resource:
    for resource in resources.all_resources(cx):
        if resource.id == text.lower():
            return resource
    return resources.find(cx, data.settings.directory.names, text)

"""Commands about protected resources and who is in their access roles."""

from typing import Annotated

import typer
from sqlalchemy.engine import Connection

from muniment import guards
from muniment.cli import terminal
from muniment.cli.directory.entries import (
    Description,
    Force,
    NewDescription,
    NewName,
    describe_ended,
    find_entry,
    repository_snapshot,
    show_entries,
)
from muniment.cli.terminal import AsJson, WithHeader
from muniment.data_folder import DataFolder
from muniment.directory import administration, resources
from muniment.directory.resources import Resource

resource = typer.Typer(no_args_is_help=True, help="Protected APIs and who is in their access roles.")

COMMANDS = {"resource": resource}

ResourceName = Annotated[str, typer.Argument(metavar="NAME", help="The resource's name or its identifier.")]
Members = Annotated[list[str], typer.Argument(metavar="ENTRY...", help="name@partition, a partition, or a location.")]


@resource.command("add")
def add_resource(
    context: typer.Context, name: Annotated[str, typer.Argument(metavar="NAME")], description: Description = ""
) -> None:
    """Register a protected API with its access role, and print its identifier."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.begin() as cx:
        resource = resources.add(cx, data.settings.directory.names, name, data.now, description=description)
    terminal.line(resource.id)


@resource.command("activate")
def activate_resource(context: typer.Context, name: ResourceName) -> None:
    """Activate a resource and print its secret key. A resource is activated once, and its key is shown once."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.begin() as cx:
        secret = resources.activate(cx, _resource(data, cx, name).id, data.now)
    terminal.line(secret)


@resource.command("list")
def list_resources(context: typer.Context, as_json: AsJson = False, header: WithHeader = None) -> None:
    """List the resources."""
    data: DataFolder = context.obj
    names = data.settings.directory.names
    with data.database("directory") as database, database.read() as cx:
        rows = [
            (
                resources.shown_name(names, each),
                each.id,
                "created" if each.activated is None else "activated",
                each.description,
            )
            for each in resources.every(cx)
        ]
    terminal.table(("Resource", "Identifier", "State", "Description"), rows, as_json=as_json, header=header)


@resource.command("set")
def set_resource(context: typer.Context, name: ResourceName, description: NewDescription = None) -> None:
    """Set the description of a resource."""
    data: DataFolder = context.obj
    if description is not None:
        with data.database("directory") as database, database.begin() as cx:
            resources.set_description(cx, _resource(data, cx, name), description)


@resource.command("rename")
def rename_resource(context: typer.Context, name: ResourceName, new_name: NewName) -> None:
    """Rename a resource. It must have no living grants, because clients ask for its name as scope. Its id stays."""
    data: DataFolder = context.obj
    names = data.settings.directory.names
    with data.database("directory") as database, database.begin() as cx:
        administration.rename_resource(cx, names, _resource(data, cx, name), new_name, data.now)


@resource.command("members")
def list_role(context: typer.Context, name: ResourceName, as_json: AsJson = False, header: WithHeader = None) -> None:
    """List who is in a resource's access role."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.read() as cx:
        members = resources.role_members(cx, _resource(data, cx, name))
    show_entries(data, members, as_json=as_json, header=header)


@resource.command("add-member")
def add_to_role(context: typer.Context, name: ResourceName, members: Members) -> None:
    """Add users, groups, units or partitions to a resource's access role."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.begin() as cx:
        target = _resource(data, cx, name)
        for member in members:
            resources.add_to_role(cx, target, find_entry(data, cx, member))


@resource.command("remove-member")
def remove_from_role(context: typer.Context, name: ResourceName, members: Members) -> None:
    """Remove entries from a resource's access role. Tokens of users who are not in it any more give no access."""
    data: DataFolder = context.obj
    with data.database("directory") as database, database.begin() as cx:
        target = _resource(data, cx, name)
        for member in members:
            administration.remove_from_role(cx, target, find_entry(data, cx, member))


@resource.command("remove")
def remove_resource(context: typer.Context, name: ResourceName, force: Force = False) -> None:
    """Remove a resource that guards no repository; its sessions end."""
    data: DataFolder = context.obj
    snapshot = repository_snapshot(data)
    with data.database("directory") as database, database.begin() as cx:
        target = _resource(data, cx, name)
        members = resources.role_members(cx, target)
        sessions_ended = guards.remove_resource(cx, snapshot, target, data.now, force=force)
    terminal.line(f"Its access role had {len(members)} members. {describe_ended(sessions_ended)}")


def _resource(data: DataFolder, cx: Connection, text: str) -> Resource:
    for resource in resources.every(cx):
        if resource.id == text.lower():
            return resource
    return resources.find(cx, data.settings.directory.names, text)

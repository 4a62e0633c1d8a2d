"""Every address of the directory by REST, below ``/rest`` and below ``/v1``, from one row each."""

from muniment.directory.api.rest import (
    access_roles,
    credentials,
    current_user,
    groups,
    oauth_clients,
    partitions,
    people,
    resources,
    stubs,
    system,
    units,
    users,
)
from muniment.directory.api.rest.calls import Row
from muniment.directory.api.rest.dialect import Dialect
from muniment.directory.context import Directory
from muniment.web.addresses import Address, Parameter

ROWS: tuple[Row, ...] = (
    *credentials.ROWS,
    *current_user.ROWS,
    *users.ROWS,
    *groups.ROWS,
    *units.ROWS,
    *partitions.ROWS,
    *resources.ROWS,
    *people.ROWS,
    *access_roles.ROWS,
    *oauth_clients.ROWS,
    *system.ROWS,
    *stubs.ROWS,
)

PARTS = (
    Parameter("user", "A user: `name@partition`, a name alone, or a location.", place="path"),
    Parameter("group", "A group: `name@partition`, a name alone, or a location.", place="path"),
    Parameter("role", "A role: `name@partition`, a name alone, or a location.", place="path"),
    Parameter("unit", "Location of a unit; that of a partition is its root unit.", place="path"),
    Parameter("partition", "Name of a partition.", place="path"),
    Parameter("resource", "Identifier or name of a resource.", place="path"),
    Parameter("access_role", "Name of an access role: `Access to ` and the name of its resource.", place="path"),
    Parameter("client", "An OAuth client, with or without `@` and the clients' partition.", place="path"),
    Parameter("attribute", "Name of a system attribute.", place="path"),
    Parameter("handler", "Name of a way of signing in.", place="path"),
    Parameter("entry", "Location of an entry.", place="path"),
)


def addresses(dialect: Dialect) -> tuple[Address[Directory], ...]:
    return tuple(row.address(dialect) for row in ROWS)

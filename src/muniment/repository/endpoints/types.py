"""The object types of a repository, with their properties. Source: repository.md 8.8."""

from starlette.requests import Request
from starlette.responses import Response

from muniment.repository import object_types
from muniment.repository.endpoints import representations, spelling
from muniment.repository.endpoints.half import BELOW, ENTERING, Address, RepositoryHalf, address, entered
from muniment.repository.refusals import UnknownType
from muniment.web.answers import Said, Table

TABLE: Table = {**ENTERING, UnknownType: Said(404, "E_UNKNOWN_TYPE")}


async def listed(request: Request, half: RepositoryHalf) -> Response:
    """GET types: a feed of all of them."""
    repository, _ = await entered(request, half)
    names = half.options.names
    representations.feed_type(request, names)
    wanted = representations.page(request, half.options, typed=True)
    catalogue = await half.desk.read(object_types.catalogue, repository.id)
    below = catalogue.with_subtypes([wanted.object_type]) if wanted.object_type else None
    own = f"{address(request, half, repository)}/types"
    entries = []
    for kind in catalogue.types():
        if below is None or kind.name in below:
            name = spelling.type_written(kind.name, names)
            parent = spelling.type_written(kind.parent, names) if kind.parent else ""
            entries.append(representations.plain_entry(f"{own}/{name}", name, "Muniment", parent, repository.created))
    shown = entries[wanted.offset : wanted.offset + wanted.size]
    more = len(entries) > wanted.offset + wanted.size
    total = len(entries) if wanted.include_total else None
    return representations.feed_answer(request, half, "Types", own, wanted, shown, more, total)


async def read(request: Request, half: RepositoryHalf) -> Response:
    """GET types/{name}."""
    repository, _ = await entered(request, half)
    names = half.options.names
    media_type = spelling.chosen(request, spelling.both(names))
    catalogue = await half.desk.read(object_types.catalogue, repository.id)
    kind = catalogue.get(spelling.type_read(request.path_params["name"], names))
    document = representations.type_document(address(request, half, repository), kind, catalogue, names)
    headers = {"Content-Type": media_type, "Cache-Control": "private, no-cache", "Vary": "Accept, Authorization"}
    return Response(spelling.answer(media_type, "type", document, names), headers=headers)


ADDRESSES: tuple[Address, ...] = (
    Address(f"{BELOW}/types", {"GET": listed}, TABLE),
    Address(f"{BELOW}/types/{{name}}", {"GET": read}, TABLE),
)
"""The type surface: every address below a repository that this module answers."""

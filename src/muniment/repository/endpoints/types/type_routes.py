"""The addresses of object types. Source: docs/interface.md, ours 19."""

from muniment.repository.endpoints import parameters
from muniment.repository.endpoints.documents import Documents
from muniment.repository.endpoints.operations import BELOW, Addresses, Operations, answer_of, listing, showing
from muniment.repository.endpoints.types import types
from muniment.repository.endpoints.types.type_bodies import AssistBody, TypeBody
from muniment.repository.endpoints.types.type_shapes import OffersDocument, TypeDocument
from muniment.web.addresses import Address, AnswerDescription, Operation


def addresses(wire: Documents) -> Addresses:
    """List the addresses."""
    kind, body = wire.thing(TypeDocument, "type"), wire.thing(TypeBody, "type")
    offers = wire.thing(OffersDocument, "assist-values")
    new_type = AnswerDescription(201, "The new type.", kind, (parameters.LOCATION,))
    every: Operations = {
        "GET": listing(wire, types.list_all, "List the object types.", typed=True),
        "POST": Operation(types.make, "Make an object type.", body=body, answers=(new_type,)),
    }
    single: Operations = {
        "GET": showing(types.read, "Show an object type with its properties.", answer_of("The object type.", kind)),
        "POST": Operation(
            types.change,
            "Add properties to an object type, or change some.",
            body=body,
            answers=(answer_of("The changed type.", kind),),
        ),
        "DELETE": Operation(
            types.remove,
            "Remove an object type that no object has.",
            answers=(AnswerDescription(204, "The type is gone."),),
        ),
    }
    assisting: Operations = {
        "POST": Operation(
            types.assist,
            "Ask which values a form offers for properties of a type.",
            body=wire.thing(AssistBody, "assist-values"),
            answers=(answer_of("The values.", offers),),
        )
    }
    return (
        Address(f"{BELOW}/types", every, types.TABLE),
        Address(f"{BELOW}/types/{{name}}", single, types.TABLE),
        Address(f"{BELOW}/types/{{name}}/assist-values", assisting, types.TABLE),
    )

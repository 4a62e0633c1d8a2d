"""The addresses of versions, and of the list of check-outs.

Source: docs/interface.md, ours 17.
"""

from muniment.repository.endpoints import parameters
from muniment.repository.endpoints.documents import Documents, ObjectDocument
from muniment.repository.endpoints.object_body import JsonMetadata
from muniment.repository.endpoints.objects import objects, versions
from muniment.repository.endpoints.operations import (
    BELOW,
    CONDITIONAL_WRITE,
    UNCHANGED,
    Addresses,
    Operations,
    listing,
)
from muniment.web.addresses import Address, AnswerDescription, Operation


def addresses(wire: Documents) -> Addresses:
    """List the addresses."""
    thing = wire.thing(ObjectDocument, "object")
    lock: Operations = {
        "PUT": Operation(
            versions.check_out,
            "Check an object out.",
            parameters=CONDITIONAL_WRITE,
            answers=(
                AnswerDescription(
                    200, "The object, checked out by the caller.", thing, (parameters.ETAG, parameters.POSITION)
                ),
            ),
        ),
        "DELETE": Operation(
            versions.cancel,
            "Cancel the check-out of an object.",
            parameters=CONDITIONAL_WRITE,
            answers=(AnswerDescription(204, "Nobody has the object checked out.", headers=(parameters.POSITION,)),),
        ),
    }
    history: Operations = {
        "GET": listing(wire, versions.history, "List the versions of an object, the newest first."),
        "POST": Operation(
            versions.check_in,
            "Check an object in as its next version.",
            parameters=(*parameters.CHECK_IN, *CONDITIONAL_WRITE),
            refused=parameters.CREATE_REFUSED,
            body=wire.creation(JsonMetadata),
            answers=(
                AnswerDescription(
                    201,
                    "The new version.",
                    thing,
                    (parameters.LOCATION, parameters.ETAG, parameters.POSITION),
                ),
            ),
        ),
    }
    current: Operations = {
        "GET": Operation(
            versions.current,
            "Show the current version of an object.",
            parameters=(*parameters.SHOWING, parameters.IF_NONE_MATCH),
            refused=parameters.SHOWING_REFUSED,
            answers=(AnswerDescription(200, "The current version.", thing, (parameters.ETAG,)), UNCHANGED),
        )
    }
    checkouts: Operations = {
        "GET": listing(
            wire, versions.list_checkouts, "List objects that are checked out.", further=parameters.CHECKOUTS
        )
    }
    return (
        Address(f"{BELOW}/objects/{{id}}/lock", lock, objects.TABLE),
        Address(f"{BELOW}/objects/{{id}}/versions", history, objects.TABLE),
        Address(f"{BELOW}/objects/{{id}}/versions/current", current, objects.TABLE),
        Address(f"{BELOW}/checked-out-objects", checkouts, objects.TABLE),
    )

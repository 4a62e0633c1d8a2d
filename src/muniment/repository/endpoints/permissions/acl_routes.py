"""The addresses of ACLs and permission sets.

Source: docs/interface.md, ours 4.
"""

from muniment.repository.endpoints import parameters
from muniment.repository.endpoints.documents import (
    AclDocument,
    DefaultPermissionSetDocument,
    Documents,
    PermissionDocument,
    PermissionSetDocument,
)
from muniment.repository.endpoints.operations import (
    BELOW,
    WRITE,
    Addresses,
    Operations,
    answer_of,
    listing,
    showing,
)
from muniment.repository.endpoints.people import people
from muniment.repository.endpoints.permissions import acls, permission_sets
from muniment.repository.endpoints.permissions.acls import AclBody
from muniment.web.addresses import Address, AnswerDescription, Operation


def addresses(wire: Documents) -> Addresses:
    """List the addresses."""
    acl, acl_body = wire.thing(AclDocument, "acl"), wire.thing(AclBody, "acl")
    permissions = answer_of("The permission set.", wire.thing(PermissionSetDocument, "permission-set"))
    new_acl = AnswerDescription(201, "The new ACL.", acl, (parameters.LOCATION,))
    every: Operations = {
        "GET": listing(wire, acls.list_all, "List the ACLs that the caller may see."),
        "POST": Operation(acls.make, "Make an ACL, which the caller owns.", body=acl_body, answers=(new_acl,)),
    }
    single: Operations = {
        "GET": showing(acls.read, "Show an ACL.", answer_of("The ACL.", acl)),
        "POST": Operation(
            acls.change, "Replace the entries of an ACL.", body=acl_body, answers=(answer_of("The changed ACL.", acl),)
        ),
        "DELETE": Operation(
            acls.remove,
            "Remove an ACL that no object carries.",
            parameters=(parameters.FORCE,),
            answers=(AnswerDescription(204, "The ACL is gone."),),
        ),
    }
    of_object: Operations = {
        "GET": showing(permission_sets.permission_set, "Show the ACL of an object, and what it permits.", permissions),
        "PUT": Operation(
            permission_sets.assign,
            "Assign another ACL to an object, or put entries on it.",
            parameters=WRITE,
            body=acl_body,
            answers=(AnswerDescription(200, permissions.meaning, permissions.content, (parameters.POSITION,)),),
        ),
    }
    default = answer_of("The ACL that new objects get.", wire.thing(DefaultPermissionSetDocument, "permission-set"))
    of_folder: Operations = {
        "GET": showing(permission_sets.default_set, "Show the ACL that new objects in a folder get.", default),
        "PUT": Operation(
            permission_sets.set_default,
            "Choose the ACL that new objects in a folder get.",
            parameters=WRITE,
            body=acl_body,
            answers=(AnswerDescription(200, default.meaning, default.content, (parameters.POSITION,)),),
        ),
        "DELETE": Operation(
            permission_sets.remove_default,
            "Give new objects the ACL of their folder again.",
            parameters=WRITE,
            answers=(AnswerDescription(204, "There is no default.", headers=(parameters.POSITION,)),),
        ),
    }
    effective: Operations = {
        "GET": Operation(
            permission_sets.effective,
            "Show what an accessor may do with an object.",
            parameters=(parameters.ACCESSOR,),
            refused=parameters.SINGLE_REFUSED,
            answers=(answer_of("The permission.", wire.thing(PermissionDocument, "permission")),),
        )
    }
    return (
        Address(f"{BELOW}/objects/{{id}}/permissions", effective, {**acls.ASSIGNING, **people.TABLE}),
        Address(f"{BELOW}/folders/{{id}}/default-permission-set", of_folder, acls.ASSIGNING),
        Address(f"{BELOW}/acls", every, acls.TABLE),
        Address(f"{BELOW}/acls/{{acl}}", single, acls.TABLE),
        Address(f"{BELOW}/objects/{{id}}/permission-set", of_object, acls.ASSIGNING),
    )

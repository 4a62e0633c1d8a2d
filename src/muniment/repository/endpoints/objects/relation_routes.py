"""The addresses of relations, relation types, comments and aspects.

Source: docs/interface.md, ours 20.
"""

from muniment.repository.endpoints import catalogues, parameters
from muniment.repository.endpoints.context import Answering, RepositoryContext
from muniment.repository.endpoints.documents import Documents
from muniment.repository.endpoints.object_body import JsonMetadata
from muniment.repository.endpoints.objects import comments, relations
from muniment.repository.endpoints.objects.comments import CommentDocument
from muniment.repository.endpoints.objects.relations import RelationDocument, RelationTypeDocument
from muniment.repository.endpoints.operations import (
    BELOW,
    UNCHANGED,
    Addresses,
    Operations,
    listing,
)
from muniment.web.addresses import Address, AnswerDescription, Content, Operation


def addresses(wire: Documents) -> Addresses:
    """List the addresses."""
    return (*_relations(wire), *_relation_types(wire), *_comments(wire), _aspects(wire))


def _relations(wire: Documents) -> Addresses:
    answer, body = wire.thing(RelationDocument, "relation"), wire.thing(JsonMetadata, "relation")
    every: Operations = {
        "GET": Operation(
            relations.list_relations,
            "List the relations between objects that the caller may see.",
            parameters=parameters.RELATIONS,
            refused=parameters.LIST_REFUSED,
            answers=(AnswerDescription(200, "A page of the list.", wire.feed),),
        ),
        "POST": _making(relations.make, "Relate two objects.", "The relation.", body, answer),
    }
    single: Operations = {
        "GET": _reading(relations.read, "Show a relation.", "The relation.", answer),
        "DELETE": _removing(relations.remove, "Remove a relation.", "The relation is gone."),
    }
    return (
        Address(f"{BELOW}/relations", every, relations.TABLE),
        Address(f"{BELOW}/relations/{{id}}", single, relations.TABLE),
    )


def _relation_types(wire: Documents) -> Addresses:
    answer, body = wire.thing(RelationTypeDocument, "relation-type"), wire.thing(JsonMetadata, "relation-type")
    meaning = "The relation type."
    every: Operations = {
        "GET": listing(wire, relations.list_types, "List the types of relations."),
        "POST": _making(relations.add_type, "Add a type of relations, as an administrator.", meaning, body, answer),
    }
    single: Operations = {
        "GET": _reading(relations.read_type, "Show a type of relations.", meaning, answer),
        "DELETE": _removing(
            relations.remove_type, "Remove a type of relations, as an administrator.", "The relation type is gone."
        ),
    }
    return (
        Address(f"{BELOW}/relation-types", every, relations.TYPES_TABLE),
        Address(f"{BELOW}/relation-types/{{relation_type}}", single, relations.TYPES_TABLE),
    )


def _comments(wire: Documents) -> Addresses:
    answer, body = wire.thing(CommentDocument, "comment"), wire.thing(JsonMetadata, "comment")

    def several(lister: Answering, maker: Answering, what: str, to: str) -> Operations:
        return {
            "GET": listing(wire, lister, f"List the {what}."),
            "POST": _making(maker, to, "The comment.", body, answer),
        }

    single: Operations = {
        "GET": _reading(comments.read, "Show a comment.", "The comment.", answer),
        "POST": Operation(
            comments.change,
            "Give a comment another text.",
            parameters=(parameters.IF_MATCH,),
            body=body,
            answers=(AnswerDescription(200, "The comment.", answer, (parameters.ETAG,)),),
        ),
        "DELETE": _removing(
            comments.remove, "Remove a comment with the replies to it.", "The comment is gone.", conditional=True
        ),
    }
    of_object = several(comments.list_comments, comments.comment, "comments on an object", "Comment on an object.")
    of_comment = several(comments.list_replies, comments.reply, "replies to a comment", "Reply to a comment.")
    return (
        Address(f"{BELOW}/objects/{{id}}/comments", of_object, comments.TABLE),
        Address(f"{BELOW}/comments/{{id}}", single, comments.TABLE),
        Address(f"{BELOW}/comments/{{id}}/replies", of_comment, comments.TABLE),
    )


def _aspects(wire: Documents) -> Address[RepositoryContext]:
    operations: Operations = {
        "GET": listing(wire, catalogues.list_aspects, "List the aspects of an object, of which there are none."),
        "POST": Operation(catalogues.refuse_aspects, "Refused: no aspects are offered."),
    }
    return Address(f"{BELOW}/objects/{{id}}/aspects", operations, catalogues.ASPECTS)


def _making(
    endpoint: Answering, summary: str, meaning: str, body: Content, answer: Content
) -> Operation[RepositoryContext]:
    description = AnswerDescription(201, meaning, answer, (parameters.LOCATION, parameters.ETAG))
    return Operation(endpoint, summary, body=body, answers=(description,))


def _reading(endpoint: Answering, summary: str, meaning: str, answer: Content) -> Operation[RepositoryContext]:
    return Operation(
        endpoint,
        summary,
        parameters=(parameters.IF_NONE_MATCH,),
        refused=parameters.SINGLE_REFUSED,
        answers=(AnswerDescription(200, meaning, answer, (parameters.ETAG,)), UNCHANGED),
    )


def _removing(
    endpoint: Answering, summary: str, meaning: str, *, conditional: bool = False
) -> Operation[RepositoryContext]:
    values = (parameters.IF_MATCH,) if conditional else ()
    return Operation(endpoint, summary, parameters=values, answers=(AnswerDescription(204, meaning),))

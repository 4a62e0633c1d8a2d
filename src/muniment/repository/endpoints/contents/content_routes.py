"""The addresses of contents.

Source: docs/interface.md, ours 3.
"""

from muniment.repository.endpoints import parameters
from muniment.repository.endpoints.contents import archives as archived
from muniment.repository.endpoints.contents import content_changes, contents
from muniment.repository.endpoints.documents import ContentDocument, Documents, IndexStatusDocument
from muniment.repository.endpoints.operations import (
    BELOW,
    CONDITIONAL_WRITE,
    UNCHANGED,
    Addresses,
    Operations,
    answer_of,
    listing,
    showing,
)
from muniment.web.addresses import BINARY, Address, AnswerDescription, Operation


def addresses(wire: Documents) -> Addresses:
    """List the addresses."""
    content, status = wire.thing(ContentDocument, "content"), wire.thing(IndexStatusDocument, "index-status")
    added = AnswerDescription(
        201, "The object has the content now.", content, (parameters.LOCATION, parameters.POSITION)
    )
    operations: Operations = {
        "GET": listing(wire, contents.list_all, "List the contents of an object."),
        "POST": Operation(
            content_changes.add,
            "Give an object a content: the main one, a further page, or a rendition.",
            parameters=(*parameters.ADD_CONTENT, *CONDITIONAL_WRITE),
            body={"*/*": BINARY},
            answers=(added,),
        ),
    }
    media: Operations = {
        "GET": Operation(
            contents.media,
            "Download a content of an object, whole or one range of it.",
            parameters=(*parameters.MEDIA, parameters.IF_NONE_MATCH, parameters.RANGE, parameters.IF_RANGE),
            answers=(
                AnswerDescription(200, "The content.", {"*/*": BINARY}, (parameters.ETAG,)),
                AnswerDescription(206, "The range that was asked for.", {"*/*": BINARY}, (parameters.ETAG,)),
                UNCHANGED,
            ),
        )
    }
    content_operations: Operations = {
        "GET": Operation(
            contents.describe,
            "Describe a content of an object.",
            parameters=parameters.DESCRIPTION,
            refused=parameters.DESCRIPTION_REFUSED,
            answers=(answer_of("The description.", content),),
        ),
        "POST": Operation(
            content_changes.change,
            "Replace a content of an object.",
            parameters=(*parameters.CHANGE_CONTENT, *CONDITIONAL_WRITE),
            body={"*/*": BINARY},
            answers=(AnswerDescription(200, "The content is replaced.", content, (parameters.POSITION,)),),
        ),
        "DELETE": Operation(
            content_changes.remove,
            "Remove a content of an object.",
            parameters=(*parameters.MEDIA, *CONDITIONAL_WRITE),
            answers=(AnswerDescription(204, "The content is removed.", headers=(parameters.POSITION,)),),
        ),
    }
    read: Operations = {
        "GET": showing(
            contents.index_status,
            "Show whether the text of an object has been extracted and indexed.",
            answer_of("The status of the text.", status),
        )
    }
    archive = AnswerDescription(200, "The archive.", {"*/*": BINARY})
    archives: Operations = {
        "GET": Operation(
            archived.of_ids,
            "Download the contents of several objects as one zip file.",
            parameters=(parameters.OBJECT_IDS,),
            answers=(archive,),
        ),
        "POST": Operation(
            archived.of_addresses,
            "Download the contents of several objects as one zip file.",
            body=wire.thing(archived.ArchiveBody, "archived-contents"),
            answers=(archive,),
        ),
    }
    return (
        Address(f"{BELOW}/archived-contents", archives, archived.TABLE),
        Address(f"{BELOW}/objects/{{id}}/contents", operations, contents.TABLE),
        Address(f"{BELOW}/objects/{{id}}/contents/content", content_operations, contents.TABLE),
        Address(f"{BELOW}/objects/{{id}}/content-media", media, contents.TABLE),
        Address(f"{BELOW}/objects/{{id}}/index-status", read, contents.TABLE),
    )

"""Every address below a repository, each method in a row: what answers it, what it gives and takes.

Sources: given 2.8 to 2.10; docs/interface.md, ours.
"""

from functools import partial
from typing import Any, get_args

from muniment.repository.api.endpoints import catalogues
from muniment.repository.api.endpoints.batches import batches
from muniment.repository.api.endpoints.batches.batch_bodies import BatchBody
from muniment.repository.api.endpoints.batches.batches import BatchDocument, CapabilitiesDocument
from muniment.repository.api.endpoints.catalogues import LocationDocument
from muniment.repository.api.endpoints.contents import archives, content_changes, contents
from muniment.repository.api.endpoints.contents.archives import ArchiveBody
from muniment.repository.api.endpoints.objects import (
    comments,
    folder_links,
    new_objects,
    object_paths,
    objects,
    relations,
    versions,
    wastebasket,
)
from muniment.repository.api.endpoints.objects.comments import CommentBody, CommentDocument
from muniment.repository.api.endpoints.objects.relations import RelationDocument, RelationTypeDocument
from muniment.repository.api.endpoints.people import people, people_changes
from muniment.repository.api.endpoints.people.people_changes import MemberReference, PersonBody
from muniment.repository.api.endpoints.permissions import acls, permission_sets
from muniment.repository.api.endpoints.permissions.acls import AclBody
from muniment.repository.api.endpoints.saved import saved_searches, search_templates
from muniment.repository.api.endpoints.saved.saved_bodies import SavedSearchBody, VariablesBody
from muniment.repository.api.endpoints.saved.saved_shapes import PATHS, ROOTS
from muniment.repository.api.endpoints.search import explanations, facets, index_report, search, similar, suggestions
from muniment.repository.api.endpoints.search.explanation_documents import ExplanationDocument
from muniment.repository.api.endpoints.types import types
from muniment.repository.api.endpoints.types.type_bodies import AssistBody, TypeBody
from muniment.repository.api.endpoints.types.type_shapes import OffersDocument, TypeDocument
from muniment.repository.api.operations import Family, Form, Row
from muniment.repository.api.shapes.object_body import JsonMetadata, JsonOptionalReference, JsonReference
from muniment.repository.api.wire import codes, parameters
from muniment.repository.api.wire.documents import (
    AclDocument,
    ContentDocument,
    DefaultPermissionSetDocument,
    DeletedObjectDocument,
    FeedDocument,
    FolderLinkDocument,
    FormatDocument,
    IndexReportDocument,
    IndexStatusDocument,
    ObjectDocument,
    PermissionDocument,
    PermissionSetDocument,
    PersonDocument,
    SavedSearchDocument,
    SearchTemplateDocument,
    SuggestionsDocument,
)
from muniment.repository.store.people import Kind
from muniment.repository.store.saved.saved_searches import Kind as SavedKind
from muniment.web.addresses import Parameter


def _object(kind: str) -> tuple[Row, ...]:
    path = f"/{kind}s/{{id}}"
    read, change, delete = (partial(each, kind=kind) for each in (objects.read, objects.change, objects.delete))
    return (
        Row(f"GET {path}", read, ObjectDocument, parameters=parameters.SHOWING, root=kind),
        Row(f"POST {path}", change, ObjectDocument, JsonMetadata, parameters=parameters.CONDITIONAL_WRITE, root=kind),
        Row(f"DELETE {path}", delete, parameters=parameters.DELETE),
    )


def _creating(path: str, root: str) -> Row:
    create = partial(new_objects.create, root=root)
    return Row(*(f"POST {path}", create, ObjectDocument, Form.CREATION), parameters=parameters.CREATE, status=201)


def _objects(path: str, name: str, listed: tuple[Parameter, ...]) -> tuple[Row, ...]:
    lister = partial(objects.list_objects, name=name)
    return (Row(f"GET {path}", lister, FeedDocument, parameters=listed), _creating(path, objects.ROOTS[name]))


def _people(kind: Kind) -> tuple[Row, ...]:
    path, one = f"/{kind}s", f"/{kind}s/{{person}}"
    return (
        Row(
            f"GET {path}",
            partial(people.list_people, kind=kind),
            FeedDocument,
            parameters=parameters.GROUPS if kind == "group" else None,
        ),
        Row(f"POST {path}", partial(people_changes.make, kind=kind), PersonDocument, PersonBody, status=201, root=kind),
        Row(f"GET {one}", partial(people.read, kind=kind), PersonDocument, parameters=(), root=kind),
        Row(f"POST {one}", partial(people_changes.change, kind=kind), PersonDocument, PersonBody, root=kind),
        Row(f"DELETE {one}", partial(people_changes.remove, kind=kind)),
    )


def _members(kind: Kind) -> tuple[Row, ...]:
    path, add = f"/groups/{{person}}/{kind}s", partial(people_changes.add_member, kind=kind)
    one = f"{path}/{{member}}"
    return (
        Row(f"GET {path}", partial(people.list_people, kind=kind), FeedDocument),
        Row(f"POST {path}", add, PersonDocument, MemberReference, status=201, root=kind),
        Row(f"GET {one}", partial(people.read, kind=kind), PersonDocument, parameters=(), root=kind),
        Row(f"DELETE {one}", partial(people_changes.remove_member, kind=kind)),
    )


def _links(path: str, end: folder_links.End) -> tuple[Row, ...]:
    link, read, unlink = (
        partial(each, end=end) for each in (folder_links.link, folder_links.read, folder_links.unlink)
    )
    write, one = parameters.WRITE, f"{path}/{{other}}"
    return (
        Row(f"POST {path}", link, FolderLinkDocument, JsonReference, parameters=write, status=201),
        Row(f"GET {one}", read, FolderLinkDocument),
        Row(f"DELETE {one}", unlink, parameters=write),
    )


def _saved(kind: SavedKind, document: type[Any]) -> tuple[Row, ...]:
    path, root = f"/{PATHS[kind]}", ROOTS[kind]
    one = f"{path}/{{{kind}}}"
    make, remove = partial(saved_searches.make, kind=kind), partial(saved_searches.remove, kind=kind)
    return (
        Row(f"GET {path}", partial(saved_searches.list_all, kind=kind), FeedDocument),
        Row(f"POST {path}", make, document, SavedSearchBody, parameters=parameters.SAVING, status=201, root=root),
        Row(f"GET {one}", partial(saved_searches.read, kind=kind), document, parameters=parameters.SHOWING),
        Row(f"DELETE {one}", remove, parameters=(parameters.IF_MATCH,)),
    )


FAMILIES = (
    Family(
        codes.SEARCHES,
        Row("GET /search", search.by_keywords, FeedDocument, parameters=parameters.KEYWORD_SEARCH),
        Row("POST /search", search.by_document, FeedDocument, Form.QUERY, parameters=parameters.DOCUMENT_SEARCH),
    ),
    Family(
        codes.EXPLANATIONS,
        Row(
            "GET /search/explanation",
            explanations.by_keywords,
            ExplanationDocument,
            parameters=parameters.KEYWORD_EXPLANATION,
        ),
        Row(
            "POST /search/explanation",
            explanations.by_document,
            ExplanationDocument,
            Form.QUERY,
            parameters=parameters.DOCUMENT_EXPLANATION,
        ),
    ),
    Family(
        codes.SEARCHES,
        Row(
            "GET /search/suggestions",
            suggestions.suggest,
            SuggestionsDocument,
            parameters=(parameters.Q, parameters.SUGGESTIONS, parameters.PLAIN_POSITION),
        ),
    ),
    Family(
        codes.SIMILAR,
        Row(
            "GET /objects/{id}/similar",
            similar.list_similar,
            FeedDocument,
            parameters=(*parameters.SIMILAR, parameters.PLAIN_POSITION),
        ),
    ),
    Family(
        codes.OBJECTS,
        *_objects("/cabinets", "cabinets", parameters.TYPED_LIST),
        _creating("/objects", "sysobject"),
        *(row for kind in ("object", "document", "folder", "cabinet") for row in _object(kind)),
        *_objects("/folders/{id}/folders", "folders", parameters.FOLDER_LIST),
        *_objects("/folders/{id}/documents", "documents", parameters.FOLDER_LIST),
        *_objects("/folders/{id}/objects", "objects", parameters.FOLDER_LIST),
        Row(
            "GET /object-by-path",
            object_paths.read,
            (FeedDocument, ObjectDocument),
            parameters=(parameters.PATH, *parameters.LIST, parameters.IF_NONE_MATCH),
        ),
        Row("GET /objects/{id}/parent-links", folder_links.list_parents, FeedDocument),
        *_links("/objects/{id}/parent-links", "parent"),
        Row(
            "PUT /objects/{id}/parent-links/{other}",
            folder_links.move,
            FolderLinkDocument,
            JsonReference,
            parameters=parameters.WRITE,
        ),
        Row("GET /folders/{id}/child-links", folder_links.list_children, FeedDocument),
        *_links("/folders/{id}/child-links", "child"),
        Row("GET /wastebasket", wastebasket.list_all, FeedDocument),
        Row("GET /wastebasket/{id}", wastebasket.read, DeletedObjectDocument),
        Row("DELETE /wastebasket/{id}", wastebasket.remove),
        Row(
            "POST /wastebasket/{id}/restore",
            wastebasket.restore,
            ObjectDocument,
            JsonOptionalReference,
            parameters=parameters.WRITE,
            status=201,
        ),
    ),
    Family(
        codes.ARCHIVES,
        Row("GET /archived-contents", archives.of_ids, Form.BYTES, parameters=(parameters.OBJECT_IDS,)),
        Row("POST /archived-contents", archives.of_addresses, Form.BYTES, ArchiveBody),
    ),
    Family(
        codes.CONTENTS,
        Row("GET /objects/{id}/contents", contents.list_all, FeedDocument, parameters=parameters.CONTENT_LIST),
        Row(
            "POST /objects/{id}/contents",
            content_changes.add,
            ContentDocument,
            Form.BYTES,
            parameters=parameters.ADD_CONTENT,
            status=201,
        ),
        Row(
            "GET /objects/{id}/contents/content", contents.describe, ContentDocument, parameters=parameters.DESCRIPTION
        ),
        Row(
            "POST /objects/{id}/contents/content",
            content_changes.change,
            ContentDocument,
            Form.BYTES,
            parameters=parameters.CHANGE_CONTENT,
        ),
        Row("DELETE /objects/{id}/contents/content", content_changes.remove, parameters=parameters.REMOVE_CONTENT),
        Row("GET /objects/{id}/content-media", contents.media, Form.BYTES, parameters=parameters.DOWNLOAD),
        Row("GET /objects/{id}/index-status", contents.index_status, IndexStatusDocument),
    ),
    Family(
        codes.OBJECTS,
        Row("PUT /objects/{id}/lock", versions.check_out, ObjectDocument, parameters=parameters.CONDITIONAL_WRITE),
        Row("DELETE /objects/{id}/lock", versions.cancel, parameters=parameters.CONDITIONAL_WRITE),
        Row("GET /objects/{id}/versions", versions.history, FeedDocument),
        Row(
            "POST /objects/{id}/versions",
            versions.check_in,
            ObjectDocument,
            Form.CREATION,
            parameters=parameters.CHECK_IN,
            status=201,
        ),
        Row("GET /objects/{id}/versions/current", versions.current, ObjectDocument, parameters=parameters.SHOWING),
        Row("GET /checked-out-objects", versions.list_checkouts, FeedDocument, parameters=parameters.CHECKOUTS),
    ),
    Family(
        {**codes.PERMISSION_SETS, **codes.PEOPLE},
        Row(
            "GET /objects/{id}/permissions",
            permission_sets.effective,
            PermissionDocument,
            parameters=(parameters.ACCESSOR, *parameters.SINGLE),
        ),
    ),
    Family(
        codes.PERMISSION_SETS,
        Row("GET /folders/{id}/default-permission-set", permission_sets.default_set, DefaultPermissionSetDocument),
        Row(
            "PUT /folders/{id}/default-permission-set",
            permission_sets.set_default,
            DefaultPermissionSetDocument,
            AclBody,
            parameters=parameters.WRITE,
        ),
        Row("DELETE /folders/{id}/default-permission-set", permission_sets.remove_default, parameters=parameters.WRITE),
    ),
    Family(
        codes.ACLS,
        Row("GET /acls", acls.list_all, FeedDocument),
        Row("POST /acls", acls.make, AclDocument, AclBody, status=201),
        Row("GET /acls/{acl}", acls.read, AclDocument),
        Row("GET /acls/{acl}/associations", acls.list_associations, FeedDocument),
        Row("POST /acls/{acl}", acls.change, AclDocument, AclBody),
        Row("DELETE /acls/{acl}", acls.remove, parameters=(parameters.FORCE,)),
    ),
    Family(
        codes.PERMISSION_SETS,
        Row("GET /objects/{id}/permission-set", permission_sets.permission_set, PermissionSetDocument),
        Row(
            "PUT /objects/{id}/permission-set",
            permission_sets.assign,
            PermissionSetDocument,
            AclBody,
            parameters=parameters.WRITE,
        ),
    ),
    Family(
        codes.PEOPLE_CHANGES,
        *(row for kind in get_args(Kind) for row in _people(kind)),
        *(row for kind in get_args(Kind) for row in _members(kind)),
    ),
    Family(
        {**codes.PEOPLE, **codes.ASPECTS},
        Row("GET /users/{person}/home", people.home, ObjectDocument, parameters=parameters.SHOWING, root="folder"),
    ),
    Family(
        codes.PEOPLE,
        Row("GET /users/{person}/permission-set", permission_sets.of_user, DefaultPermissionSetDocument, parameters=()),
    ),
    Family(codes.PEOPLE, Row("GET /currentuser", people.current_user, PersonDocument, parameters=(), root="user")),
    Family(
        codes.SAVED_SEARCHES,
        *_saved("search", SavedSearchDocument),
        Row(
            "POST /saved-searches/{search}",
            saved_searches.change,
            SavedSearchDocument,
            SavedSearchBody,
            parameters=(*parameters.SAVING, parameters.IF_MATCH),
        ),
        Row(
            "GET /saved-searches/{search}/execution",
            saved_searches.execute,
            FeedDocument,
            parameters=parameters.SAVED_SEARCH,
        ),
        Row(
            "GET /saved-searches/{search}/results",
            saved_searches.results,
            FeedDocument,
            parameters=parameters.STORED_RESULTS,
        ),
        Row("PUT /saved-searches/{search}/results", saved_searches.store, FeedDocument, parameters=parameters.STORING),
        Row("DELETE /saved-searches/{search}/results", saved_searches.remove_results),
    ),
    Family(
        codes.SEARCH_TEMPLATES,
        *_saved("template", SearchTemplateDocument),
        Row(
            "POST /search-templates/{template}/execution",
            search_templates.execute,
            FeedDocument,
            VariablesBody,
            parameters=parameters.DOCUMENT_SEARCH,
        ),
    ),
    Family(
        codes.RELATIONS,
        Row("GET /relations", relations.list_relations, FeedDocument, parameters=parameters.RELATIONS),
        Row("POST /relations", relations.make, RelationDocument, JsonMetadata, status=201),
        Row("GET /relations/{id}", relations.read, RelationDocument),
        Row("DELETE /relations/{id}", relations.remove),
    ),
    Family(
        codes.RELATION_TYPES,
        Row("GET /relation-types", relations.list_types, FeedDocument),
        Row("POST /relation-types", relations.add_type, RelationTypeDocument, JsonMetadata, status=201),
        Row("GET /relation-types/{relation_type}", relations.read_type, RelationTypeDocument),
        Row("DELETE /relation-types/{relation_type}", relations.remove_type),
    ),
    Family(
        codes.COMMENTS,
        Row("GET /objects/{id}/comments", comments.list_comments, FeedDocument),
        Row("POST /objects/{id}/comments", comments.comment, CommentDocument, CommentBody, status=201),
        Row("GET /comments/{id}", comments.read, CommentDocument),
        Row("POST /comments/{id}", comments.change, CommentDocument, CommentBody, parameters=(parameters.IF_MATCH,)),
        Row("DELETE /comments/{id}", comments.remove, parameters=(parameters.IF_MATCH,)),
        Row("GET /comments/{id}/replies", comments.list_replies, FeedDocument),
        Row("POST /comments/{id}/replies", comments.reply, CommentDocument, CommentBody, status=201),
    ),
    Family(
        codes.ASPECTS,
        Row("GET /objects/{id}/aspects", catalogues.list_aspects, FeedDocument),
        Row("POST /objects/{id}/aspects", catalogues.refuse_aspects, status=400),
    ),
    Family(
        codes.ENTERING,
        Row("POST /batches", batches.execute, BatchDocument, BatchBody, related=True),
        Row("GET /batch-capabilities", batches.capabilities, CapabilitiesDocument),
        Row("GET /index-report", index_report.read, IndexReportDocument),
        Row("POST /index-report", index_report.want, IndexReportDocument, parameters=(parameters.REPAIR,), status=202),
    ),
    Family(codes.LISTING, Row("GET /formats", catalogues.list_formats, FeedDocument)),
    Family(codes.FORMATS, Row("GET /formats/{format}", catalogues.read_format, FormatDocument)),
    Family(
        codes.ASPECTS,
        Row("GET /network-locations/{location}", catalogues.read_location, LocationDocument, root="network-location"),
    ),
    Family(
        codes.LISTING,
        *(Row(f"GET /{name}", partial(catalogues.list_nothing, name=name), FeedDocument) for name in catalogues.EMPTY),
        Row("GET /network-locations", catalogues.list_locations, FeedDocument),
        Row("GET /supported-facets", facets.list_all, FeedDocument),
    ),
    Family(
        codes.TYPES,
        Row("GET /types", types.list_all, FeedDocument, parameters=parameters.TYPES),
        Row("POST /types", types.make, TypeDocument, TypeBody, status=201),
        Row("GET /types/{name}", types.read, TypeDocument, parameters=parameters.TYPE),
        Row("POST /types/{name}", types.change, TypeDocument, TypeBody),
        Row("DELETE /types/{name}", types.remove),
        Row(
            "POST /types/{name}/assist-values",
            types.assist,
            OffersDocument,
            AssistBody,
            parameters=(parameters.INCLUDED_PROPERTIES,),
        ),
    ),
)

"""Why is an object a hit of a search, or why not? The answer is printed for the data folder's administrator."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

from sqlalchemy.engine import Connection

from muniment import app
from muniment.cli import terminal
from muniment.ground import clock
from muniment.installation import backends, initialise
from muniment.installation.data_folder import DataFolder
from muniment.installation.exit_codes import Exit, Failure
from muniment.integration import directory_people
from muniment.repository.api.callers.tokeninfo import TokeninfoReader
from muniment.repository.api.endpoints.search import explanations
from muniment.repository.search.agent import indexing
from muniment.repository.search.answering.explaining import explanation
from muniment.repository.search.answering.inquiry import Inquiry, SearchQuestion
from muniment.repository.search.aql.tree import Query
from muniment.repository.store import repositories
from muniment.repository.store.permissions import name_keys
from muniment.repository.store.permissions.principals import Principals

_WITHIN = "  "


def explain(
    data: DataFolder, query: Query, repository_name: str, object_id: str, user_id: str, *, as_json: bool
) -> int:
    """The exit code is 1 if the object is no hit."""
    with asking(data, repository_name) as inquiry:
        answer = explanation.explain(
            inquiry,
            object_id,
            lambda: SearchQuestion(query),
            user=_user(data, inquiry.cx, inquiry.repository.resource_id, user_id) if user_id else None,
            reason_not_indexed=indexing.reason,
        )
    document = explanations.document_of(answer, data.settings.repository.names)
    if as_json:
        terminal.print_json(document)
    else:
        for line in _lines(document, answer.stored.name):
            terminal.line(terminal.harmless(line))
    return Exit.OK if answer.hit else Exit.FAILED


@contextmanager
def asking(data: DataFolder, repository_name: str) -> Iterator[Inquiry]:
    with data.database("repository") as database:
        with database.read() as cx:
            repository = repositories.find(cx, repository_name)
        with closing(backends.reader(data.installation, repository)) as reader:
            snapshot = reader.snapshot()
            with database.read() as cx:
                administrator = initialise.administrator(data)
                yield Inquiry(cx, snapshot, repository, administrator, clock.now(), data.settings.repository)


def _user(data: DataFolder, cx: Connection, resource_id: str, user_id: str) -> Callable[[], Principals]:
    if not data.together:
        raise Failure("The directory does not run here, so its users are not known: leave out --for.", Exit.REFUSED)

    def principals() -> Principals:
        settings = data.settings
        names = settings.directory.names
        with data.read("directory") as directory:
            document = directory_people.describe(directory, names, resource_id, user_id)
        reader = TokeninfoReader(
            settings.repository.administrators, names.dn_suffix, app.attributes(settings), data.identify
        )
        user = reader.principals(document)
        return user.with_keys(name_keys.keys(cx, user.names))

    return principals


def _lines(document: Mapping[str, Any], name: str) -> Iterator[str]:
    outcome = f"a hit, score {document['score']:.4f}," if document["hit"] else "no hit"
    yield f"{name} ({document['object-id']}) is {outcome} for {document['user']}."
    for match in document["matches"]:
        names = ", ".join(match.get("properties", ()))
        where = "together" if "together" in match else f"in the {' and the '.join(match.get('found-in', ()))}"
        what = match["term"] if "by-meaning" in match else f"{match['term']!r} {where}"
        yield f"{_WITHIN}{match['weight']:.4f}  {what}{f' ({names})' if names else ''}"
    for reason in document["reasons"]:
        place = f" ({reason['place']})" if "place" in reason else ""
        yield f"{_WITHIN}{reason['message']}{place}"
    right, index, types = document["right"], document["index"], document["types"]
    yield ""
    types_sought = f", asked for {', '.join(types['types'])}" if types["types"] else ""
    yield f"types: {_outcome(types)}: {types['object-type']}{types_sought}"
    if "condition" in document:
        yield from _part(document["condition"], "")
    for part in ("locations", "facets"):
        if part in document:
            yield f"{part}: {_outcome(document[part])}"
    entries = [f"{entry['accessor']} {entry['basic-permission']}" for entry in right["permitted"]]
    roles = [role for role in ("administrator", "owner") if right[role]]
    by = "; ".join([*roles, f"ACL {right['acl-name']}: {', '.join(entries) or 'nothing'}"])
    yield f"right: {_outcome(right)}: {right['basic-permission']} ({by})"
    missed_kinds = f", it has missed {', '.join(index['missed'])}" if index["missed"] else ""
    yield f"index: {_outcome(index)}{missed_kinds}"
    if "text" in document:
        yield f"text: {document['text']['state']}"


def _part(part: Mapping[str, Any], margin: str) -> Iterator[str]:
    values = " ".join(repr(value) for value in part.get("values", ()))
    words = [part["kind"], part.get("name", ""), part.get("operator", ""), values]
    place = f" ({part['place']})" if "place" in part else ""
    matching_parts = f" in the {' and the '.join(part['found-in'])}" if part.get("found-in") else ""
    yield f"{margin}{' '.join(word for word in words if word)}{place}: {_outcome(part)}{matching_parts}"
    for inner in part.get("parts", ()):
        yield from _part(inner, margin + _WITHIN)


def _outcome(part: Mapping[str, Any]) -> str:
    return str(part["outcome"]).replace("-", " ")

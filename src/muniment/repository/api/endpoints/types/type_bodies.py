"""What does a body say about an object type, or about a form that asks for values, in JSON or XML?

Source: docs/interface.md, ours 19.
"""

from collections.abc import Mapping
from typing import TypeVar

import msgspec
from starlette.requests import Request

from muniment.ground.refusals import Malformed
from muniment.ground.xml import Element
from muniment.repository.api.context import RepositoryContext
from muniment.repository.api.shapes import object_body
from muniment.repository.api.wire import parameters, spelling
from muniment.repository.options import RepositoryNames
from muniment.repository.refusals import UnknownType, WrongValue
from muniment.repository.store.objects.properties.properties import Given, PropertyKind, Value
from muniment.repository.store.objects.types.type_forms import AllowedForm, PropertyForm, Several, TypeForm


class AllowedValueBody(msgspec.Struct):
    """A value that a property may have. With ``when``, it is allowed only with these values of another property."""

    value: Value
    label: str = ""
    when: Several = None


class PropertyBody(msgspec.Struct, rename="kebab"):
    """A property of a type. A field that is left out stays as it is; in a new property it gets its default."""

    name: str
    type: PropertyKind | msgspec.UnsetType = msgspec.UNSET
    repeating: bool | msgspec.UnsetType = msgspec.UNSET
    length: int | msgspec.UnsetType = msgspec.UNSET
    label: str | msgspec.UnsetType = msgspec.UNSET
    searchable: bool | msgspec.UnsetType = msgspec.UNSET
    default: Several | msgspec.UnsetType = msgspec.UNSET
    values: list[Value | AllowedValueBody] | msgspec.UnsetType = msgspec.UNSET
    allow_user_values: bool | msgspec.UnsetType = msgspec.UNSET
    dependencies: list[str] | msgspec.UnsetType = msgspec.UNSET


class TypeBody(msgspec.Struct):
    """A new type, or the changes of a type."""

    name: str = ""
    parent: str | None = None
    label: str | msgspec.UnsetType = msgspec.UNSET
    properties: list[PropertyBody] = []


class AssistBody(msgspec.Struct, rename="kebab"):
    """The properties for which a form asks for values, and the values of the properties on which they depend.

    Those values are ``dependencies`` or, as clients of the field call them, ``properties``.
    """

    included_properties: list[str] = []
    dependencies: dict[str, Several] | None = None
    properties: dict[str, Several] | None = None


B = TypeVar("B")

_type_decoder = msgspec.json.Decoder(TypeBody)
_assist_decoder = msgspec.json.Decoder(AssistBody)
_LISTS = ("values", "dependencies", "when")


async def read_new_type(request: Request, context: RepositoryContext) -> TypeForm:
    """Raises what ``object_body.receive`` raises, and WrongValue."""
    names, body = context.names, await object_body.receive(request, context, _type_decoder, _type_of_xml)
    return _form(body, body.name, _parent(body, names), names)


async def read_changes(request: Request, context: RepositoryContext, name: str) -> TypeForm:
    """The name is neutral.

    Raises what ``object_body.receive`` raises, and WrongValue.
    """
    names, body = context.names, await object_body.receive(request, context, _type_decoder, _type_of_xml)
    if body.name and body.name != spelling.write_type(name, names):
        raise WrongValue("An object type keeps its name.")
    return _form(body, name, _parent(body, names), names)


def _parent(body: TypeBody, names: RepositoryNames) -> str:
    try:
        return spelling.read_type(body.parent, names) if body.parent else ""
    except UnknownType as refusal:
        raise WrongValue(refusal.sentence) from refusal


async def read_wanted_values(request: Request, context: RepositoryContext) -> tuple[list[str], dict[str, Given]]:
    """Return neutral names, and values of other properties.

    Raises what ``object_body.receive`` raises.
    """
    names = context.names
    body = await object_body.receive(request, context, _assist_decoder, _assist_of_xml)
    named = parameters.read(request).get(parameters.INCLUDED_PROPERTIES.name, "").split(",")
    included = [*body.included_properties, *(name.strip() for name in named if name.strip())]
    given = {**(body.properties or {}), **(body.dependencies or {})}
    return (
        [spelling.read_property(name, names) for name in included],
        {spelling.read_property(name, names): value for name, value in given.items()},
    )


def _convert(members: Mapping[str, object], kind: type[B], place: str) -> B:
    try:
        return msgspec.convert(members, kind, strict=False)
    except msgspec.ValidationError as error:
        raise Malformed(f"The XML cannot be read: {str(error)[:300].rstrip('.')} ({place}).") from error


def _type_of_xml(root: Element, names: RepositoryNames) -> TypeBody:
    object_body.check_namespaces(root, names)
    members: dict[str, object] = {
        name: root.attributes[name] for name in ("name", "parent", "label") if name in root.attributes
    }
    for part in root.children:
        if part.name in ("name", "parent", "label"):
            members[part.name] = part.text.strip()
        elif part.name == "properties":
            members["properties"] = [_property_of_xml(child) for child in part.children]
    return _convert(members, TypeBody, root.place)


def _property_of_xml(element: Element) -> dict[str, object]:
    members: dict[str, object] = {}
    for part in element.children:
        if part.name in members:
            raise Malformed(f"The element {part.name[:64]!r} comes twice ({part.place}).")
        if part.name == "values":
            members["values"] = [_property_of_xml(item) if item.children else item.text for item in part.children]
        elif part.name in _LISTS or part.children:
            members[part.name] = [item.text for item in part.children] or ([part.text] if part.text.strip() else [])
        else:
            members[part.name] = part.text if part.name in ("default", "value", "label") else part.text.strip()
    if members.get("default") == "":
        members["default"] = None
    return members


def _assist_of_xml(root: Element, names: RepositoryNames) -> AssistBody:
    object_body.check_namespaces(root, names)
    members: dict[str, object] = {}
    for part in root.children:
        if part.name == "included-properties":
            members[part.name] = [child.text.strip() for child in part.children]
        elif part.name in ("dependencies", "properties"):
            members[part.name] = object_body.properties(part, names)
    return _convert(members, AssistBody, root.place)


def _form(body: TypeBody, name: str, parent: str, names: RepositoryNames) -> TypeForm:
    forms = [_property_form(each, names) for each in body.properties]
    return TypeForm(name, parent, label=body.label, properties=forms)


def _property_form(body: PropertyBody, names: RepositoryNames) -> PropertyForm:
    depends_on: str | msgspec.UnsetType = msgspec.UNSET
    if body.dependencies is not msgspec.UNSET:
        if len(body.dependencies) > 1:
            raise WrongValue(f"The values of the property {body.name[:64]!r} may depend on only one other property.")
        depends_on = spelling.read_property(body.dependencies[0], names) if body.dependencies else ""
    allowed: list[AllowedForm] | msgspec.UnsetType = msgspec.UNSET
    if body.values is not msgspec.UNSET:
        allowed = [
            AllowedForm(each.value, each.label, each.when) if isinstance(each, AllowedValueBody) else AllowedForm(each)
            for each in body.values
        ]
    return PropertyForm(
        spelling.read_property(body.name, names),
        body.type,
        body.repeating,
        length=body.length,
        label=body.label,
        searchable=body.searchable,
        default=body.default,
        allowed=allowed,
        is_open=body.allow_user_values,
        depends_on=depends_on,
    )

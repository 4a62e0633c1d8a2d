"""Write answers in two dialects of JSON, and read bodies that may be spelled in either.

Below ``/rest`` keys are in camelCase, below ``/v1`` in snake_case. A type of an answer has its fields in snake_case;
``spelled`` says where the rule is not enough. Both dialects read both spellings (docs/interface.md, ours 23).
"""

import re
import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from muniment.directory.api import spelling
from muniment.ground import json_text
from muniment.ground.refusals import Malformed, UnsupportedMediaType
from muniment.web.addresses import ErrorShape
from muniment.web.answers.responses import ErrorCode, json_response
from muniment.web.requests import bodies

Dialect = Literal["rest", "v1"]

T = TypeVar("T")

LONGEST_BODY = 1 << 20

PRODUCT_CODES: Mapping[str, int] = {"expired_ticket": 1034, "unknown_user": 3007}
"""What an error body has as its ``status`` instead of the status of HTTP, by the code of the refusal."""

_SPELLINGS: dict[type[Any], dict[Dialect, dict[str, str]]] = {}
_WORD = re.compile(r"_([a-z0-9])")
_NAME = re.compile(r"(?<=[`.])[a-z0-9]+(?:_[a-z0-9]+)+")
"""A name of a field in a sentence of msgspec, as ``$.string_list``."""

_ANY_JSON: msgspec.json.Decoder[Any] = msgspec.json.Decoder()


def spelled(rest: Mapping[str, str], v1: Mapping[str, str] | None = None) -> Callable[[type[T]], type[T]]:
    """Say which fields of a type have keys that the rule of a dialect does not give."""

    def note(kind: type[T]) -> type[T]:
        _SPELLINGS[kind] = {"rest": dict(rest), "v1": dict(v1 or {})}
        return kind

    return note


@cache
def type_in(dialect: Dialect, kind: Any) -> Any:
    """Return the type that has the keys of a dialect, for a type of an answer and all types in it."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = get_type_hints(kind, include_extras=True)
        names = {field.name: key(dialect, kind, field.name) for field in msgspec.structs.fields(kind)}
        inner = {name: type_in(dialect, hints[name]) for name in names}
        if all(names[name] == name and inner[name] is hints[name] for name in names):
            return kind
        fields = [
            (field.name, inner[field.name], _default_of(field))
            if not field.required
            else (field.name, inner[field.name])
            for field in msgspec.structs.fields(kind)
        ]
        prefix = "Rest" if dialect == "rest" else "V1"
        return msgspec.defstruct(
            f"{prefix}{kind.__name__}",
            fields,
            rename=names,
            kw_only=True,
            omit_defaults=kind.__struct_config__.omit_defaults,
            namespace={"__doc__": kind.__doc__},
        )
    arguments = get_args(kind)
    changed = tuple(type_in(dialect, argument) if argument is not Ellipsis else argument for argument in arguments)
    if changed == arguments:
        return kind
    origin = get_origin(kind)
    return Union[changed] if origin in (Union, types.UnionType) else origin[changed]  # noqa: UP007 - of a tuple


def encode(dialect: Dialect, answer: msgspec.Struct) -> bytes:
    kind = type_in(dialect, type(answer))
    return msgspec.json.encode(answer if kind is type(answer) else msgspec.convert(answer, kind, from_attributes=True))


def errors(dialect: Dialect) -> ErrorShape:
    kind = spelling.RestError if dialect == "rest" else spelling.V1Error

    def write(_request: Request, error_code: ErrorCode, sentence: str) -> Response:
        code = PRODUCT_CODES.get(error_code.code, error_code.status)
        return json_response(kind(code, sentence, None), error_code.status, spelling.bearer_challenge(error_code))

    return ErrorShape(f"directory-{dialect}", write, {"application/json": kind}, lambda error_code: error_code.code)


async def read(request: Request, dialect: Dialect, kind: type[T], limit: int = LONGEST_BODY) -> T:
    """Read a JSON object, in either dialect; a refusal spells its keys in ``dialect``.

    Unknown keys are ignored, and null is a key left out unless the field takes it. Texts are read as numbers and
    booleans, and these as texts, where a field is such a one; an empty text is then a key left out. No body is an empty
    object. Raises UnsupportedMediaType, TooLarge, TimedOut, Malformed.
    """
    media_type = bodies.media_type(request)
    if media_type not in ("", "application/json"):
        raise UnsupportedMediaType("The body must be application/json.")
    body = await bodies.raw(request, limit)
    document = json_text.decode(body, _ANY_JSON) if body.strip() else {}
    if not isinstance(document, dict):
        raise Malformed("The body must be a JSON object.")
    try:
        return msgspec.convert(_read_struct(document, kind), kind, strict=False)
    except msgspec.ValidationError as error:
        sentence = _NAME.sub(lambda match: key(dialect, kind, match[0]), str(error)[:300])
        raise Malformed(f"The JSON cannot be read: {sentence.rstrip('.')}.") from error


def key(dialect: Dialect, kind: type[Any], name: str) -> str:
    """Spell the key of a field."""
    own = _SPELLINGS.get(kind, {}).get(dialect, {})
    return own.get(name) or (_camel(name) if dialect == "rest" else name)


def _camel(name: str) -> str:
    return _WORD.sub(lambda match: match[1].upper(), name)


def _default_of(field: msgspec.structs.FieldInfo) -> Any:
    if field.default is not msgspec.NODEFAULT:
        return field.default
    return msgspec.field(default_factory=field.default_factory)


@cache
def _readable(kind: Any) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the fields by every key that means them, and their types."""
    keys: dict[str, str] = {}
    for field in msgspec.structs.fields(kind):
        every = {field.name, _camel(field.name), *(key(dialect, kind, field.name) for dialect in ("rest", "v1"))}
        keys |= dict.fromkeys(every, field.name)
    return keys, get_type_hints(kind)


def _read_struct(document: Mapping[str, Any], kind: Any) -> dict[str, Any]:
    keys, hints = _readable(kind)
    values: dict[str, Any] = {}
    for key, value in document.items():
        name = keys.get(key)
        if name is None:
            continue
        read_value = _read_value(value, hints[name])
        if read_value is msgspec.UNSET:
            continue
        if name in values and values[name] != read_value:
            raise Malformed(f"The JSON has two values for {key[:100]!r}, in two spellings.")
        values[name] = read_value
    return values


def _read_value(value: Any, hint: Any) -> Any:
    """UNSET stands for a key left out."""
    options = [each for each in get_args(hint) if each is not msgspec.UnsetType] if _is_union(hint) else [hint]
    if value is None:
        return None if type(None) in options else msgspec.UNSET
    kind = next((each for each in options if each is not type(None)), None)
    match value:
        case dict() if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            return _read_struct(value, kind)
        case dict() if get_origin(kind) is dict:
            return {key: _read_value(each, get_args(kind)[1]) for key, each in value.items()}
        case list() if get_origin(kind) is list:
            read_values = (_read_value(each, get_args(kind)[0]) for each in value)
            return [each for each in read_values if each is not msgspec.UNSET]
        case _:
            return _read_text(value, kind)


def _read_text(value: Any, kind: Any) -> Any:
    if kind is str and isinstance(value, bool):
        return "true" if value else "false"
    if kind is str and isinstance(value, (int, float)):
        return str(value)
    if kind in (bool, int) and isinstance(value, str):
        return value.strip().casefold() or msgspec.UNSET
    return value


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in (Union, types.UnionType)

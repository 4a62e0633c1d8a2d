"""Which properties may a caller write, and which values do they send?

A property that the caller may not write is refused, unless its values are the present ones. Source: docs/interface.md,
ours 2.
"""

from collections.abc import Mapping, Sequence

from muniment.ground.clock import Instant
from muniment.ground.naming import fold_name, has_reordering
from muniment.repository.refusals import NotWritable, UnknownProperty, WrongValue
from muniment.repository.store.objects.properties import properties
from muniment.repository.store.objects.properties.properties import Given, PropertyDefinition, Value
from muniment.repository.store.objects.types.object_types import MAX_NAME, Catalogue
from muniment.repository.store.permissions import acl_names
from muniment.repository.store.permissions.principals import Principals


def read(
    catalogue: Catalogue,
    type_name: str,
    json_values: Mapping[str, Given],
    current: Mapping[str, list[Value]],
    principals: Principals,
    *,
    owns: bool,
    new: bool = False,
) -> dict[str, list[Value]]:
    """Return what is to be written, without present values that the caller may not write.

    The case of the owner's name makes no difference. Who ``owns`` the object may assign the ACL. A ``new`` object gets
    the defaults.

    Raises UnknownProperty, WrongValue, NotWritable.
    """
    definitions, json_values = catalogue.properties_of(type_name), _with_domain(json_values, current)
    values: dict[str, list[Value]] = {}
    for name, value in json_values.items():
        if name not in definitions:
            raise UnknownProperty(f"The object type {type_name!r} has no property {name[:100]!r}.")
        definition = definitions[name]
        new_values = properties.read_values(definition, value)
        if definition.writable:
            values[name] = new_values
        elif new_values != current.get(name, []):
            if (
                name == "owner_name"
                and _are_one_user(new_values, current.get(name, []))
                and not principals.administrator
            ):
                continue
            is_allowed = principals.administrator or (name == "acl_name" and owns)
            if name not in ("acl_name", "owner_name") or not is_allowed:
                raise NotWritable(f"The property {name!r} is not yours to write.")
            values[name] = new_values
    if "owner_name" in values:
        _check_owner(text_of(values, "owner_name"))
    if ruled := catalogue.ruled(type_name):
        if new:
            values |= {each.name: list(each.default) for each in ruled if each.default and each.name not in json_values}
        _check_rules(ruled, values, current)
    return values


def _with_domain(json_values: Mapping[str, Given], current: Mapping[str, list[Value]]) -> Mapping[str, Given]:
    """Name the ACL by its owner, ``acl_domain``, and its name. Raises WrongValue for an owner without an ACL."""
    domain, name = json_values.get("acl_domain"), json_values.get("acl_name")
    rest = {each: value for each, value in json_values.items() if each != "acl_domain"}
    present, present_name = text_of(current, "acl_domain"), text_of(current, "acl_name")
    if not domain or not isinstance(domain, str):
        if domain:
            raise WrongValue("The property 'acl_domain' is the owner of an ACL.")
        return rest
    if name in (None, "", present_name) and fold_name(domain) == fold_name(present):
        return rest
    if not isinstance(name, str) or not name:
        raise WrongValue("The property 'acl_domain' is the owner of the ACL that 'acl_name' names: give both.")
    return {**rest, "acl_name": acl_names.write(domain, name)} if acl_names.is_name(name) else rest


def _check_rules(
    ruled: Sequence[PropertyDefinition], values: Mapping[str, list[Value]], current: Mapping[str, list[Value]]
) -> None:
    """Raises WrongValue. A property is checked only if it changes, or the one on which its list depends."""
    changed = {name for name, of_name in values.items() if of_name != current.get(name, [])}
    of_object = {**current, **values}
    for definition in ruled:
        assistance = definition.assistance
        if definition.name not in changed and assistance.depends_on not in changed:
            continue
        if forbidden := assistance.list_forbidden(of_object.get(definition.name, []), of_object):
            (value,) = properties.as_sent(definition, forbidden[:1])
            depending = f" with this value of {assistance.depends_on!r}" if assistance.depends_on else ""
            raise WrongValue(
                f"The property {definition.name!r} may not have the value {str(value)[:60]!r}{depending}: "
                "it has a closed list of values."
            )


def object_name(values: Mapping[str, list[Value]]) -> str:
    """Raises WrongValue also for a name that reads in another order."""
    name = text_of(values, "object_name")
    if not name.strip():
        raise WrongValue("An object needs a name: give the property 'object_name'.")
    if len(name) > MAX_NAME:
        raise WrongValue(f"The value of 'object_name' is longer than {MAX_NAME} characters.")
    if has_reordering(name):
        raise WrongValue("The value of 'object_name' holds a character that shows others in another order (U+202E).")
    return name


def text_of(values: Mapping[str, list[Value]], name: str) -> str:
    """Return an empty text for no value."""
    return str(values[name][0]) if values.get(name) else ""


def content_date(values: Mapping[str, list[Value]]) -> Instant | None:
    return next((value for value in values.get("a_content_date", ()) if isinstance(value, int)), None)


def _are_one_user(left: Sequence[Value], right: Sequence[Value]) -> bool:
    return [fold_name(str(each)) for each in left] == [fold_name(str(each)) for each in right]


def _check_owner(owner: str) -> None:
    name, _, partition = owner.rpartition("@")
    if not name or not partition or len(owner) > 320:
        raise WrongValue("An owner is a user, written name@partition.")

"""Which values may a property have, and which does a form offer for it?

A *closed* list permits no other value, an *open* one suggests. With a condition, a value is allowed only while another
property of the object has one of certain values.

Source: docs/interface.md, ours 19.
"""

from collections.abc import Collection, Mapping, Sequence

import msgspec

Single = str | int | float | bool


class AllowedValue(msgspec.Struct, frozen=True):
    """Allowed if the property on which the list depends has one of the values ``when``; always if it is empty."""

    value: Single
    label: str = ""
    when: tuple[Single, ...] = ()


class Assistance(msgspec.Struct, frozen=True):
    """If ``is_open``, other values are allowed, too. ``depends_on`` names a property, or is empty."""

    values: tuple[AllowedValue, ...] = ()
    is_open: bool = False
    depends_on: str = ""

    def list_values(self, of_object: Mapping[str, Sequence[Single]]) -> list[AllowedValue]:
        others = of_object.get(self.depends_on, ()) if self.depends_on else ()
        return [each for each in self.values if not each.when or any(value in each.when for value in others)]

    def list_forbidden(self, new_values: Collection[Single], of_object: Mapping[str, Sequence[Single]]) -> list[Single]:
        """List what an object with these values may not have; an open or empty list forbids nothing."""
        if self.is_open or not self.values or not new_values:
            return []
        allowed = {each.value for each in self.list_values(of_object)}
        return [value for value in new_values if value not in allowed]


ANY = Assistance()

"""Which values may a property have, and which does a form offer for it?

A list of values is *closed* when no other value may be written, and *open* when it only suggests values. A value may
have a condition. Then it is allowed only while another property of the object has one of certain values. Source:
docs/interface.md, ours 19.
"""

from collections.abc import Collection, Mapping, Sequence

import msgspec

Single = str | int | float | bool
"""One value of a property: the same type as ``properties.Value``."""


class AllowedValue(msgspec.Struct, frozen=True):
    """A value that a property may have, with its label.

    The value is allowed if the property on which the list depends has one of the values ``when``. If ``when`` is empty,
    the value is always allowed.
    """

    value: Single
    label: str = ""
    when: tuple[Single, ...] = ()


class Assistance(msgspec.Struct, frozen=True):
    """The list of allowed values of one property. If ``is_open``, the property may have other values, too.

    ``depends_on`` names the property on which the values depend; it is empty if they depend on none.
    """

    values: tuple[AllowedValue, ...] = ()
    is_open: bool = False
    depends_on: str = ""

    def list_values(self, of_object: Mapping[str, Sequence[Single]]) -> list[AllowedValue]:
        others = of_object.get(self.depends_on, ()) if self.depends_on else ()
        return [each for each in self.values if not each.when or any(value in each.when for value in others)]

    def list_forbidden(self, new_values: Collection[Single], of_object: Mapping[str, Sequence[Single]]) -> list[Single]:
        """List the new values of the property that are forbidden for an object with these values of its properties.

        An open list forbids no value, and neither does an empty one.
        """
        if self.is_open or not self.values or not new_values:
            return []
        allowed = {each.value for each in self.list_values(of_object)}
        return [value for value in new_values if value not in allowed]


ANY = Assistance()
"""No list: the property may have any value of its kind."""

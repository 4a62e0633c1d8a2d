"""The user whom a command's ``--owner`` names."""

from muniment.cli import terminal
from muniment.data_folder import DataFolder
from muniment.naming import fold_name
from muniment.repository.permissions.principals import Principals


def find_owner(data: DataFolder, owner: str) -> Principals:
    """Return who ``--owner`` means, with every permission. Warn of a user whom the directory in this folder lacks."""
    principals = data.acting_as(owner)
    if data.together and not data.identify([fold_name(owner)]):
        terminal.errors.print(
            f"Warning: the directory knows no user {owner!r}. The objects are for the first one who gets this name."
        )
    return principals

"""Who owns the objects that a command makes?"""

from muniment.cli import terminal
from muniment.ground.naming import fold_name
from muniment.installation import initialise
from muniment.installation.data_folder import DataFolder
from muniment.repository.store.permissions.principals import Principals


def find_owner(data: DataFolder, owner: str) -> Principals:
    """The user of ``--owner``, or the administrator, with every permission.

    Warns of a user whom the directory in this folder does not know.
    """
    if not owner:
        return initialise.administrator(data)
    principals = data.acting_as(owner)
    if data.together and not data.identify([fold_name(owner)]):
        terminal.errors.print(
            f"Warning: the directory knows no user {owner!r}. The objects are for the first one who gets this name."
        )
    return principals

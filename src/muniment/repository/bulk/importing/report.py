"""What did an import do?"""

import msgspec

from muniment.database.connections import Busy
from muniment.ground.refusals import Refusal


class ImportReport(msgspec.Struct):
    """``object_ids`` has all files that did not fail, imported now or earlier."""

    created: int = 0
    replaced: int = 0
    unchanged: int = 0
    moved: int = 0
    deleted: int = 0
    """Folders are not counted."""
    withheld: int = 0
    """These were kept because more than half of the imported files are gone."""
    reassigned: int = 0
    """These got another ACL because the import names one."""
    links: int = 0
    hidden: int = 0
    unsettled: int = 0
    failed: list[tuple[str, str]] = []
    object_ids: list[str] = []

    @property
    def files(self) -> int:
        return self.created + self.replaced + self.moved + self.unchanged

    def add(self, path: str, outcome: str, object_id: str) -> None:
        """``outcome`` is ``made``, ``replaced``, ``moved`` or ``unchanged``, or the reason of a failure, without
        ``object_id``.
        """
        if object_id:
            self.object_ids.append(object_id)
        match outcome:
            case "made":
                self.created += 1
            case "replaced":
                self.replaced += 1
            case "moved":
                self.moved += 1
            case "unchanged":
                self.unchanged += 1
            case reason:
                self.failed.append((path, reason))


def reason_of(error: Refusal | Busy | OSError) -> str:
    if isinstance(error, OSError):
        return f"cannot be read or kept: {error.strerror}"
    return error.sentence if isinstance(error, Refusal) else str(error)

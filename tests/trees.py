"""Query trees, compared."""

from muniment.repository.search.aql.tree import Both, Either, Keywords, Without


def shape(keywords: Keywords | None) -> Keywords | None:
    """Return keywords without what says whether they may be relaxed (test_relaxation)."""
    match keywords:
        case Both(parts) | Either(parts):
            return type(keywords)(tuple(inner for part in parts if (inner := shape(part)) is not None))
        case Without(part):
            inner = shape(part)
            return None if inner is None else Without(inner)
        case _:
            return keywords

"""Which members of a list does a caller want, in which order? A small language, compiled to SQL (docs/filters.md)."""

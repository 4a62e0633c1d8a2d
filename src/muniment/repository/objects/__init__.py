"""Objects with their types and properties: created, read, changed, deleted, counted by owner."""

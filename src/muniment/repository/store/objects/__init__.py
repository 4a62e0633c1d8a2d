"""Objects: their rows are here, and below them their decisions, folders, contents, types and properties."""

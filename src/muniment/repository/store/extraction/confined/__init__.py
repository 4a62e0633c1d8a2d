"""The confined process that reads files."""

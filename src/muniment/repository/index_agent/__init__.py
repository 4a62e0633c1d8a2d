"""What keeps the index true to the repository: it follows the change log, rebuilds and checks."""

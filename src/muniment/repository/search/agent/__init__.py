"""The index agent keeps the index equal to the repository: it follows the change log, rebuilds and checks."""

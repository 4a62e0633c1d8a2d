"""The repository's REST interface: one table of all addresses, and a room for each kind of address."""

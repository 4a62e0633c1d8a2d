"""The repository's REST interface: modules that answer its addresses, and one table of all addresses."""

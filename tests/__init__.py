"""The tests: a folder a kind, as CONTRIBUTING.md lists them."""

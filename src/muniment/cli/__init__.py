"""The command line: everything an operator does, from the first start to the check of an index."""

from muniment.cli.commands import main

__all__ = ["main"]

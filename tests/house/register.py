"""What is each module for? `make modules ARGS=repository/search` prints the sentence that opens each one."""

import ast
import sys

from tests.house.sources import SOURCE, modules


def main() -> None:
    """Print a line for each module below the named rooms, or below all."""
    wanted = tuple(sys.argv[1:]) or ("",)
    for module in modules():
        if module.room.startswith(wanted):
            sign = (ast.get_docstring(module.tree) or "").partition("\n\n")[0].replace("\n", " ")
            print(f"{module.path.relative_to(SOURCE)}: {sign}")


if __name__ == "__main__":
    main()

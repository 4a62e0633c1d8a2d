"""Let ``python -m muniment`` do the same as ``muniment``."""

from muniment.cli import main

if __name__ == "__main__":
    main()

"""``python -m muniment`` is ``muniment``."""

from muniment.cli import main

if __name__ == "__main__":
    main()

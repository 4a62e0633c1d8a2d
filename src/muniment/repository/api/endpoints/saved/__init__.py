"""The addresses of saved searches and search templates."""

"""The addresses of users and groups."""

"""Muniment: a directory, which decides who may enter, and a repository, which keeps and finds content."""

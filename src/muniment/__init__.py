"""Muniment: a directory that answers who may enter, a repository that answers what is held and how it is found."""

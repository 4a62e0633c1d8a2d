"""Searches that are kept: saved ones, templates, and those that a cursor names."""

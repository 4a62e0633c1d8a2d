"""Folders of files that become objects."""

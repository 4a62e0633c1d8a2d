"""Imports: folders of files that become objects."""

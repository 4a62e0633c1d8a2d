"""Imports: folders of files that become objects (docs/decisions/0082)."""

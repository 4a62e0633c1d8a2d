"""Requests: what a stranger sent, read within the caps."""

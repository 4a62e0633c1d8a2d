"""Filters and sorts of lists: which members does a caller want, in which order? A small language that becomes SQL.

Source: docs/filters.md.
"""

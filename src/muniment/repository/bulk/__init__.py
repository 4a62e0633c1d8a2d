"""Bulk work: many objects at once, in transactions of their own."""

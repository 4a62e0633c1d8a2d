"""Measures how good the hits are, on texts whose answers people have judged."""

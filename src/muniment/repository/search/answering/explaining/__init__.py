"""Explanations: why an object is a hit, or is none."""

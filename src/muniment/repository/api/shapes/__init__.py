"""Shapes: lists and objects as they are written and read."""

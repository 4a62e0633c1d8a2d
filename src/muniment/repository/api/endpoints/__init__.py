"""Endpoints: a room a surface."""

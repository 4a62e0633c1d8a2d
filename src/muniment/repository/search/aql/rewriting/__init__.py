"""Rewriting: what else a typed question may mean."""

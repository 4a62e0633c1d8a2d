"""Compiling: conditions become queries of the engine."""

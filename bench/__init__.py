"""Measures us beside a bare engine or a bare endpoint on the same machine, in one run."""

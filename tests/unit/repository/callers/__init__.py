"""Unit tests of `repository/callers`."""

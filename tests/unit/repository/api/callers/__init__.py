"""Unit tests of `repository/api/callers`."""

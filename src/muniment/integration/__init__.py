"""Integration: what knows both halves."""

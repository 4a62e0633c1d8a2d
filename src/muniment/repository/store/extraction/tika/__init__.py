"""A Tika server reads what our own readers do not."""

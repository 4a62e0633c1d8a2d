"""Copy a running installation as a whole or not at all, and restore such a copy."""

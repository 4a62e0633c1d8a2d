"""Lists of objects, and what a caller may see in them."""

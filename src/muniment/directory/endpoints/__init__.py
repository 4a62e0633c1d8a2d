"""The directory's addresses: a module for each surface, and one page with all of them."""

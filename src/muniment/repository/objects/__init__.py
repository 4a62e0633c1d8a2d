"""Objects with their types and properties: make, read, change, delete and count them."""

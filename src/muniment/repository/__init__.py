"""What is held, and how it is found: typed objects with content, their change log, their index, their searches."""

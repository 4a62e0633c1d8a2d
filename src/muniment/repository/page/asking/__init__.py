"""What somebody asks on the page, and how it was read."""

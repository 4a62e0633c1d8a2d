"""What callers do with objects: each decision checks their rights and makes the change."""

"""The content store: it keeps bytes, returns them, and checks that they are unchanged."""

"""The addresses of types."""

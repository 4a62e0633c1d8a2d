"""The addresses of contents: get, send, change and remove them."""

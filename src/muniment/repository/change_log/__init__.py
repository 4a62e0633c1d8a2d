"""The ordered log of changes: written with each change, read by followers, told to callers as sealed positions."""

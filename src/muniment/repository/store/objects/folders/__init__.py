"""Folders: what lies in them, and by which paths and names it is reached."""

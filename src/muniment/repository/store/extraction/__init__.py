"""Extraction: what is the text of a file?

The extractor itself reads a small plain text file. Every other file is read in a process of its own, which can do
nothing else (docs/decisions/0096).
"""

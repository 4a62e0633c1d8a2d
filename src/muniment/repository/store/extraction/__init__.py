"""Extraction: what is the text of a file? Small plain text is read at once, any other file in a confined process
(docs/decisions/0096).
"""

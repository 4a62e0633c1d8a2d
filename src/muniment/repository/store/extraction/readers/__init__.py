"""Readers: what is the text of a file of this format?"""

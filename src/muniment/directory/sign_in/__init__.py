"""Signing in: passwords behind their gate, whose turn it is there, pauses after wrong ones, browsers' tickets."""

"""Extraction: what is the text of a file? Each file is read in a process of its own that can do nothing else."""

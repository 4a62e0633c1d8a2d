"""Extraction: what is the text of a file? A small plain text file is read by the extractor itself. Every other file is
read in a process of its own, which can do nothing else."""

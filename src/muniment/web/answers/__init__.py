"""Answers: a status, a shape, a page or a stream."""

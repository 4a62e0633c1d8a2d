"""Tests of the filters of lists."""

"""Partitions, organizational units, groups and users."""

"""The ground: time, files, locks, names, caches and refusals, which every room may use."""

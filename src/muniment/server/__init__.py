"""Run the server: start its processes, watch them, and stop them together."""

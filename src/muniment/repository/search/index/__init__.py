"""The full-text index: what an engine must do, and the engine that is built in."""

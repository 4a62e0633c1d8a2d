"""The wire: names, parameters, positions, and the codes of refusals."""

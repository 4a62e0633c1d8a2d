"""A copy of a running installation that is whole or not there, and its way back."""

"""Other people's software against ours."""

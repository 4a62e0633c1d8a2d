"""The grants of the token endpoint, a module each; ``oauth/grants`` has a row for each."""

"""The grant types of the token endpoint, one module each. ``oauth/grants`` lists them."""

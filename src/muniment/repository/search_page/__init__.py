"""The page to search from: people sign in, search, read objects, and save searches with a browser, even without
JavaScript."""

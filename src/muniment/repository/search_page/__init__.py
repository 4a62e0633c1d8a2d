"""The page to search from: people sign in, search, read and save searches with a browser, without JavaScript too."""

"""The directory's pages: sign-in and the administrator's console, which work without JavaScript."""

"""The directory's pages, which work without JavaScript: sign-in and the administrator's console."""

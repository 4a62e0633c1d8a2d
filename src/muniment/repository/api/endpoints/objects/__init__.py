"""The addresses of objects: their metadata, folders, wastebasket, versions, relations and comments."""

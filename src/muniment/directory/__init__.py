"""Who may enter? The directory keeps users, groups and resources with their access roles, and issues tokens."""

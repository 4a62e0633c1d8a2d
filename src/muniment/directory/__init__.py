"""Who may enter: partitions, units, groups, users, resources with access roles, and the tokens issued for them."""

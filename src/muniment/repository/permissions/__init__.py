"""Who calls, which ACLs speak of them, and how much may they do?"""

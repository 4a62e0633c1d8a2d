"""Who calls, which ACLs apply to them, and how much may they do?"""

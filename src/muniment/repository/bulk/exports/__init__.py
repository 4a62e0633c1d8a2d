"""How is a whole repository written into a folder, as an *export*, and how is a repository made from one?"""

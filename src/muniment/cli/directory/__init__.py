"""Commands about the directory: who may enter?"""

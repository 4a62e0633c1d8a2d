"""Which objects are near in meaning to a question?"""

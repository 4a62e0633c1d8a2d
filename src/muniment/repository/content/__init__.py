"""Keep these bytes; give me those bytes; are they still what they were?"""

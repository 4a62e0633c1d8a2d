"""Which searches do callers keep, who may see them, and which of their results did callers store?"""

"""Which searches do callers keep, who may see these searches, and which of the searches' results did callers store?"""

"""Which searches do callers keep, who may see them, and what did they find when somebody stored it?"""

"""The demo: what do `make run` and `make demo` do?"""

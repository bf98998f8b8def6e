"""The page of `experiments.default_c`."""
def page(rows, options): pass

def page(rows, options):
    pass

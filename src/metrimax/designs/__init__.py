"""The data as a linear map: every backend offers ``X w`` and ``X' slope``, and knows no labels."""

from metrimax.designs.convert import as_design
from metrimax.designs.linear import CSR, Dense
from metrimax.designs.wrappers import ExtraColumns, WithIntercept

__all__ = ["CSR", "Dense", "ExtraColumns", "WithIntercept", "as_design"]

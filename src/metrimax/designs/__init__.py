"""The data as a linear map: every backend offers ``X w`` and ``X' slope``, and knows no labels."""

from metrimax.designs.convert import as_design, is_design
from metrimax.designs.linear import CSR, Dense
from metrimax.designs.sharded import Sharded
from metrimax.designs.wrappers import ExtraColumns, WithIntercept

__all__ = ["CSR", "Dense", "ExtraColumns", "Sharded", "WithIntercept", "as_design", "is_design"]

"""The problem of Joachims (2005) as parameters of `MeasureSVC`: the measure's risk alone, the threshold of training."""

PAPER = {"hinge": 0.0, "threshold": "trained"}

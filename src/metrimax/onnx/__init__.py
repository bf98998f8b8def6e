"""Export to ONNX: ``import metrimax.onnx`` registers converters with skl2onnx, then ``skl2onnx.to_onnx`` works.

`MeasureSVC` and `MeasureSVCCV` convert, alone or in a pipeline, with two classes, several, or label indicator matrices;
linear, or with any kernel but a function of one's own and precomputed values. `CAPOClassifier`, `CAPOClassifierCV` and
`MeasureEnsemble` convert where their auxiliaries and members do, as those of the presets "default" and "fast"; an error
names the part that does not. The model has two outputs: "label", that of `predict`, and "scores", those of
`decision_function` as a matrix (n, L). `MeasureRanker` and `MeasureRankerCV` have one, their scores as a column (n, 1).

Scores are computed in the type of the input: with float32 a score that is zero up to rounding may get the other label.

Examples
--------
>>> import numpy as np
>>> import metrimax.onnx
>>> from skl2onnx import to_onnx  # doctest: +SKIP
>>> onnx_model = to_onnx(model, X[:1].astype(np.float32))  # doctest: +SKIP
"""

from __future__ import annotations

from skl2onnx import update_registered_converter

from metrimax.estimators.capo import CAPOClassifier
from metrimax.estimators.capo_cv import CAPOClassifierCV
from metrimax.estimators.ensemble import MeasureEnsemble
from metrimax.estimators.ranker import MeasureRanker
from metrimax.estimators.ranker_cv import MeasureRankerCV
from metrimax.estimators.svc import MeasureSVC
from metrimax.estimators.svc_cv import MeasureSVCCV
from metrimax.onnx.classifiers import OPTIONS, convert, convert_ranker, parse, ranker_shapes, shapes
from metrimax.onnx.composed import convert_capo, convert_ensemble, ensemble_shapes

for _estimator, _shapes, _convert in (
    (MeasureSVC, shapes, convert),
    (MeasureSVCCV, shapes, convert),
    (CAPOClassifier, shapes, convert_capo),
    (CAPOClassifierCV, shapes, convert_capo),
    (MeasureEnsemble, ensemble_shapes, convert_ensemble),
):
    update_registered_converter(
        _estimator, f"Metrimax{_estimator.__name__}", _shapes, _convert, parser=parse, options=OPTIONS
    )
for _ranker in (MeasureRanker, MeasureRankerCV):
    update_registered_converter(_ranker, f"Metrimax{_ranker.__name__}", ranker_shapes, convert_ranker)

"""The HTML representation of an estimator: a link to its documentation, and what is proven of its fit."""

from __future__ import annotations

import html
from collections import Counter
from typing import Any

import numpy as np

SITE = "https://metrimax.readthedocs.io/en/stable"
"""The address of the site; `[project.urls]` in pyproject.toml has the same."""


class Documented:
    """Mixin, in front of scikit-learn's `BaseEstimator`.

    Its HTML representation links to the page of the reference that describes the class, and has a line with the
    certificate below it after a fit. Of `_repr_html_inner` and `_repr_mimebundle_`, which all supported versions of
    scikit-learn have, notebooks call the second.
    """

    _doc_link_module = "metrimax"
    _doc_link_template = SITE + "/reference/{page}.html"

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        """The page has the name under which the class is imported."""
        room = type(self).__module__.split(".")[1]
        home = "metrimax" if room == "estimators" else f"metrimax.{room}"
        return {"page": f"{home}.{type(self).__name__}"}

    def _repr_html_inner(self) -> str:
        drawn: str = super()._repr_html_inner()  # type: ignore[misc]
        return drawn + self._certificate_html()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += self._certificate_html()
        return bundle

    def _certificate_html(self) -> str:
        """A line with status, gap, objective and bound; empty before a fit, and for ensembles, which have none."""
        fitted = vars(self)
        if "gap_" not in fitted:
            return ""
        gaps, objectives, bounds = (np.atleast_1d(fitted[name]) for name in ("gap_", "objective_", "dual_bound_"))
        status = fitted["status_"] if isinstance(fitted["status_"], list) else [fitted["status_"]]
        told = [
            f"{count} {name}"
            for name, count in Counter(one.name.lower().replace("_", " ") for one in status).most_common()
        ]
        worst = int(np.argmax(gaps))
        which = "" if len(gaps) == 1 else f"{len(gaps)} labels ({', '.join(told)}); the largest gap is shown. "
        words = status[worst].value if len(status) == len(gaps) else status[0].value
        line = (
            f"{which}{words[:1].upper()}{words[1:]}. Gap {gaps[worst]:.2g} in units of the measure; "
            f"objective {objectives[worst]:.6g}, proven lower bound {bounds[worst]:.6g}."
        )
        return f"<p class='metrimax-certificate'><b>Certificate.</b> {html.escape(line)}</p>"

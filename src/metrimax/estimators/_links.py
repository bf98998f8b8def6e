"""The link to the documentation in the HTML representation of an estimator."""

from __future__ import annotations

SITE = "https://metrimax.readthedocs.io/en/stable"
"""The address of the site; `[project.urls]` in pyproject.toml has the same."""


class Documented:
    """Mixin: scikit-learn's HTML representation links to the page of the reference that describes the class."""

    _doc_link_module = "metrimax"
    _doc_link_template = SITE + "/reference/{page}.html"

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        """The page has the name under which the class is imported."""
        room = type(self).__module__.split(".")[1]
        home = "metrimax" if room == "estimators" else f"metrimax.{room}"
        return {"page": f"{home}.{type(self).__name__}"}

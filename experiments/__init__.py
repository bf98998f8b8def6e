"""Programs that reproduce the papers' tables and figures; they write into docs/results/."""

"""Programs that measure; they write into docs/results/."""

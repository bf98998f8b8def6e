"""One training engine for the estimators and the command line; it does without scikit-learn."""

"""Estimates of performance without a test set: xi-alpha, leave-one-out, resampling."""

"""Benchmarks that print JSON lines: both sides in one run, so that their ratio holds on a noisy machine."""

"""Forests of trees that forget: which tree sees which examples and features follows from hashes."""

"""The exact best split of K labels, of binary features, categories and numbers, under inserts and deletes."""

from algorithms.mixed.pool import Decisions, MixedSplitPool, Split

__all__ = ["Decisions", "MixedSplitPool", "Split"]

"""What trees are built by, and the policy that says when a part of one is built anew."""

from __future__ import annotations

from typing import NamedTuple

# Policies: a file each, beside build.py, which they share.
EPSILON = 0  # epsilon.py: after so many edits
EXACT = 1  # exact.py: where the batch builder would choose another split
BETA = 2  # beta.py: where another split gains more, by more than beta


class Terms(NamedTuple):
    """What a tree is built by."""

    alpha: float  # a node whose impurity is at most half of it is a leaf
    min_examples: int  # k: so is one of no more examples
    max_depth: int  # h: so is one this deep
    way: int  # a `Way`
    drawn: int = 0  # so many features alone are looked at in a node, of those that part it; 0: all
    salt: int = 0  # below 2^32, by which they are drawn
    policy: int = EPSILON
    beta: float = 0.0  # of the policy BETA

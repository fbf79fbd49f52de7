"""The unit of weight: weights and counts are int64 in multiples of 2^-20. And a constant."""

from __future__ import annotations

UNIT_BITS = 20
UNIT = 1 << UNIT_BITS  # the weight of one unweighted example
PER_UNIT = 2.0**-UNIT_BITS
MAX_TOTAL = 1 << 62  # weights of one index, or tree, sum to less: so a sum of two such sums fits

LN2 = 0.6931471805599453  # written out, since the logarithms of machines differ in the last bit

"""The examples of a subtree that is about to be built, and their columns: paper 003's CSC, and its mapping.

A worked picture: five examples, the numeric feature 7 in the column 0, the binary feature 9 in the column 1::

    rows     [ 40 12 33  8 51 ]      example 0 is row 40 of the store, and so on
    first    [ 0 2 3 3 4 6 ]         entries of example i in `column`: 0 to 2, 2 to 3, ..
    column   [ 0 1 0 1 0 1 ]
    spans    column 0: 0 to 3        only numeric columns are stored
    owner    [ 0 1 4 ]               the examples that have it, ascending
    value    [ 2. -1. 5. ]
    order    [ 2 0 4 | 1 3 ]         the permutation L: a node owns a range of it
    place    [ 1 3 0 4 2 ]           place[order[p]] = p, paper 003, equation 7

With `Way.ORDERED` a column is in the order of the nodes, and of the values in each that was scored::

    owner    [ 0 4 | 1 ]
    value    [ 2. 5. | -1. ]

All of it is scratch, grown outside the kernels; between two builds `spans`, `numeric`, `present`, `counts` and
`part` are 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from algorithms.core.arrays import Float64s, Int8s, Int32s, Int64s, int64
from algorithms.core.example_store import LABEL, LENGTH, START, WEIGHT
from algorithms.core.fixed_point import MAX_TOTAL, UNIT_BITS
from algorithms.core.jit import inlined, jit, prefetch
from algorithms.core.kinds import BINARY
from algorithms.core.rows import Rows
from algorithms.dynamic import columns, vocabulary
from algorithms.dynamic.examples import Examples
from algorithms.dynamic.labels import add_to_feature
from algorithms.dynamic.ordering import DIGITS
from algorithms.dynamic.vocabulary import KIND

# Columns of `Segment.spans`.
BEGIN, END = 0, 1

# Rows of `Segment.sizes`.
HELD, STORED, TOUCHED, PENDING = 0, 1, 2, 3  # examples; stored columns; columns of a node; nodes to come
WHOLE, LIGHTEST, HEAVIEST = 4, 5, 6  # 1 where all weights are whole numbers; the least and the greatest
KEPT = 7  # how many splits of binary features a scan has kept
HANDED = 8  # the index of a node that is replaced, plus 1, for the one in its place; 0: there is none

MOST_KEPT = 129
_AHEAD = 8  # examples


class Segment(NamedTuple):
    """Scratch for n examples with e entries in d columns; c classes weigh there, or it is two sums of numbers."""

    rows: Int64s  # int64[n], of each example
    label: Int64s  # int64[n], a class or a number
    weight: Int64s  # int64[n], in units of 2^-20, of numbers in examples
    order: Int64s  # int64[n]
    place: Int64s  # int64[n]
    first: Int64s  # int64[n + 1]
    column: Int32s  # int32[e]
    owner: Int32s  # int32[e], of no size where all features are binary, and so are the next ones
    value: Float64s  # float64[e]
    found_owner: Int32s  # int32[n], the non-zeros of a column in a node, looked up
    found_value: Float64s  # float64[n]
    spare_owner: Int32s  # int32[n], see ordering.py
    spare_value: Float64s  # float64[n]
    digits: Int64s  # int64[2 * DIGITS]
    spans: Int64s  # int64[d, 2], where in `owner` and `value` a numeric column begins and ends
    numeric: Int8s  # int8[d], 1 of numeric columns
    group: Int64s  # int64[d], where in them, with `Way.ORDERED`, those of a node begin
    stored: Int64s  # int64[d], the numeric columns
    present: Int64s  # int64[d], how many examples of a node have a feature
    counts: Int64s  # int64[d, c], and their class weights
    touched: Int64s  # int64[d], the columns of a node
    totals: Int64s  # int64[c], class weights of a node
    below: Int64s  # int64[c], those at most a threshold
    part: Int64s  # int64[c], those on one side of the zeros
    constant: Int64s  # int64[d, 2], the last node in which all have one value of a numeric column: start, stop
    kept_score: Float64s  # float64[MOST_KEPT], splits that a scan has kept, a heap: the first scores most
    kept_column: Int64s  # int64[MOST_KEPT]
    kept_below: Int64s  # int64[MOST_KEPT, c], class weights of their low sides
    keys: Int64s  # int64[d], by which features are drawn in a node, ascending; of no size where none are
    pending: Int64s  # int64[n + 2, 6], nodes to come: parent, side, depth, start, stop, salt
    sizes: Int64s  # int64[9]
    column_of: Int32s  # int32[...], of features below its size; of no size: the vocabulary is asked
    kept_columns: Any  # numeric features that a scan has kept: a KeptColumns where nodes keep them, or NO_COLUMNS


def make(
    examples: int,
    entries: int,
    width: int,
    classes: int,
    plain: bool,
    *,
    draws: bool = False,
    keeps_columns: bool = False,
) -> Segment:
    """Return scratch with room for so many columns.

    `plain` says that all features are binary, `draws` that nodes draw some, `keeps_columns` that their numeric
    features have floors of their own.
    """
    numeric = 0 if plain else entries
    sorted_ = 0 if plain else examples
    return Segment(
        rows=np.zeros(examples, np.int64),
        label=np.zeros(examples, np.int64),
        weight=np.zeros(examples, np.int64),
        order=np.zeros(examples, np.int64),
        place=np.zeros(examples, np.int64),
        first=np.zeros(examples + 1, np.int64),
        column=np.zeros(entries, np.int32),
        owner=np.zeros(numeric, np.int32),
        value=np.zeros(numeric),
        found_owner=np.zeros(sorted_, np.int32),
        found_value=np.zeros(sorted_),
        spare_owner=np.zeros(sorted_, np.int32),
        spare_value=np.zeros(sorted_),
        digits=np.zeros(0 if plain else 2 * DIGITS, np.int64),
        spans=np.zeros((width, 2), np.int64),
        numeric=np.zeros(width, np.int8),
        group=np.zeros(width, np.int64),
        stored=np.zeros(width, np.int64),
        present=np.zeros(width, np.int64),
        counts=np.zeros((width, classes), np.int64),
        touched=np.zeros(width, np.int64),
        totals=np.zeros(classes, np.int64),
        below=np.zeros(classes, np.int64),
        part=np.zeros(classes, np.int64),
        constant=np.zeros((width, 2), np.int64),
        kept_score=np.zeros(MOST_KEPT),
        kept_column=np.zeros(MOST_KEPT, np.int64),
        kept_below=np.zeros((MOST_KEPT, classes), np.int64),
        keys=np.zeros(width if draws else 0, np.int64),
        pending=np.zeros((examples + 2, 6), np.int64),
        sizes=np.zeros(9, np.int64),
        column_of=np.empty(0, np.int32),
        kept_columns=columns.make_kept() if keeps_columns else columns.NO_COLUMNS,
    )


@inlined
def begin_weights(segment: Segment) -> None:
    """Begin to note what weights there are."""
    segment.sizes[WHOLE] = 1
    segment.sizes[LIGHTEST] = MAX_TOTAL
    segment.sizes[HEAVIEST] = 0


@inlined
def take_label(segment: Segment, examples: Examples, i: int) -> None:
    """Take the label and the weight of an example by its row, and note what weights there are."""
    row = segment.rows[i]
    weight = examples.rows[row, WEIGHT]
    segment.label[i] = examples.rows[row, LABEL]
    segment.weight[i] = weight
    note_weight(segment, weight)


@inlined
def bring(segment: Segment, examples: Examples, i: int) -> None:
    """Have what examples are that come a few after this brought to the cache: they are anywhere in the store."""
    last = segment.sizes[HELD] - 1
    prefetch(examples.rows, segment.rows[min(i + 2 * _AHEAD, last)], LABEL)
    start = examples.rows[segment.rows[min(i + _AHEAD, last)], START]
    prefetch(examples.features, start)
    if examples.values.size > 0:
        prefetch(examples.values, start)


@inlined
def note_weight(segment: Segment, weight: int) -> None:
    """Note the weight of an example."""
    if weight >> UNIT_BITS << UNIT_BITS != weight:
        segment.sizes[WHOLE] = 0
    segment.sizes[LIGHTEST] = min(segment.sizes[LIGHTEST], weight)
    segment.sizes[HEAVIEST] = max(segment.sizes[HEAVIEST], weight)


@jit
def lay_out(criterion: Any, segment: Segment, examples: Examples, words: Rows) -> None:
    """Make the columns of the examples in `rows` by counting sort, and tally their features. O(entries)."""
    sizes = segment.sizes
    spans = segment.spans
    touched = int64(0)
    entry = int64(0)
    begin_weights(segment)
    for i in range(sizes[HELD]):
        bring(segment, examples, i)
        take_label(segment, examples, i)
        row = segment.rows[i]
        segment.order[i] = i
        segment.place[i] = i
        segment.first[i] = entry
        start = examples.rows[row, START]
        for at in range(start, start + examples.rows[row, LENGTH]):
            feature = int64(examples.features[at])
            if feature < segment.column_of.size:
                column = int64(segment.column_of[feature])
            else:
                column = vocabulary.find(words, feature)
            segment.column[entry] = column
            entry += 1
            if segment.present[column] == 0:
                segment.touched[touched] = column
                touched += 1
                if segment.owner.size > 0 and words.cells[column, KIND] != BINARY:
                    segment.numeric[column] = 1
                    segment.constant[column, END] = 0
            segment.present[column] += 1
            if segment.owner.size == 0 or segment.numeric[column] == 0:
                add_to_feature(criterion, segment.counts, column, segment.label[i], segment.weight[i])
    segment.first[sizes[HELD]] = entry
    sizes[TOUCHED] = touched
    stored = int64(0)
    begin = int64(0)
    for at in range(touched):
        column = segment.touched[at]
        if segment.numeric[column] == 1:
            segment.stored[stored] = column
            stored += 1
            spans[column, BEGIN] = begin
            segment.group[column] = begin
            begin += segment.present[column]
            spans[column, END] = begin
    sizes[STORED] = stored
    if stored > 0:
        _fill(segment, examples)


@jit
def _fill(segment: Segment, examples: Examples) -> None:
    """Write the entries of numeric columns where `group` says, which moves along."""
    are_all = segment.sizes[STORED] == segment.sizes[TOUCHED]
    for i in range(segment.sizes[HELD]):
        start = examples.rows[segment.rows[i], START]
        for entry in range(segment.first[i], segment.first[i + 1]):
            column = int64(segment.column[entry])
            if are_all or segment.numeric[column] == 1:
                to = segment.group[column]
                segment.owner[to] = i
                segment.value[to] = examples.values[start + entry - segment.first[i]]
                segment.group[column] = to + 1


@jit
def clear(segment: Segment) -> None:
    """Leave the scratch as the next build wants it. O(columns)."""
    for at in range(segment.sizes[STORED]):
        column = segment.stored[at]
        segment.spans[column, BEGIN] = 0
        segment.spans[column, END] = 0
        segment.numeric[column] = 0
    segment.sizes[STORED] = 0
    segment.sizes[HELD] = 0

"""The loop of forests that grow: every tree is asked before it learns, and a drift of its errors replaces it.

::

    example -> for each tree:  ask it -> vote, as heavy as it has lately been right
                               learn, as many times as it is drawn; so does the tree beside it
                               warning: a new tree is begun beside it     drift: that one takes its place
            -> most votes

Each place in a forest has two trees in the pool, of which one votes. What is sampled follows from hashes: the
features that a tree sees from those of (seed, place, how many trees the place has had), how often an example
weighs in it from those of (seed, place, number of the example in its key).

Where the arrays would not hold what a tree learns the kernel stops, the pool enlarges them, and the kernel goes
on.
"""

from __future__ import annotations

from typing import NamedTuple

from algorithms.core.arrays import Float64s, Int8s, Int32s, Int64s, int64
from algorithms.core.events import (
    APPLIED,
    CANNOT_FORGET,
    COUNT_OVERFLOW,
    DELETE,
    DONE,
    DROP,
    IGNORED,
    INSERT,
    PREDICT,
    SKIPPED,
    TOLD,
    TOO_MANY_KEYS,
    WRONG_LABEL,
    WRONG_WEIGHT,
    Batch,
)
from algorithms.core.fixed_point import PER_UNIT, UNIT
from algorithms.core.hashing import mix
from algorithms.core.jit import inlined, jit
from algorithms.core.names import Names
from algorithms.core.stored import stored
from algorithms.forests.draws import ALL, FEATURES, Draws, ticket, times
from algorithms.forests.ledger import NONE, Hashes
from algorithms.trees import grow
from algorithms.trees.policies import adwin
from algorithms.trees.policies.adwin import Windows
from algorithms.trees.predict import loss_of
from algorithms.trees.state import Forest, Out
from algorithms.trees.state import Rules as TreeRules

# Columns of `Growing.keys`.
ALIVE = 0  # 1 once the key has learned something, until it is dropped
EVENTS = 1  # examples learned
LEARNED = 2  # their weight, in units
KEY_COLUMNS = 3

# Columns of `Growing.places`.
VOTER = 0  # which of the two trees votes: 0 or 1
BESIDE = 1  # 1: the other one grows, too
MADE = 2  # trees that the place has had beside its first
WARNINGS, DRIFTS = 3, 4  # so far
NUMBER = 5  # of each tree: which of those that the place has had it is
RIGHT = 7  # of each tree: how often it has lately been right, in units of 2^-20
ASKED = 9  # of each tree: how often it was asked before it learned, and knew something
PLACE_COLUMNS = 11

# Cells of `Room.at`.
EVENT, PLACE, STAGE, ATTEMPT, WRONG, TIMES, CHOSEN = range(7)
_ASK, _LEARN, _LEARN_BESIDE = range(3)  # stages

LEAST = UNIT >> 8  # what a vote weighs at least: trees that were all wrong still say something
RECENT = 256  # a tree's accuracy is a mean in which an example weighs 1 / 256, or less while there are fewer


@stored("keys", "places", "windows", "alive", None)
class Growing(NamedTuple):
    """What forests are beside their trees."""

    keys: Int64s  # int64[keys, KEY_COLUMNS]
    places: Int64s  # int64[keys x trees, PLACE_COLUMNS]
    windows: Windows  # two for each place, over its errors: for warnings, for drifts
    alive: Int64s  # int64[1], how many keys are alive
    names: Names  # stored by the pool, where features have names


class Rules(NamedTuple):
    """The settings of a forest, as its kernels see them."""

    draws: Draws
    classes: int
    warning: float  # delta of the detectors, see adwin.py
    drift: float
    max_weight: int  # the weights of a key sum to less
    max_keys: int


class Room(NamedTuple):
    """Scratch, and where the kernel is."""

    at: Int64s  # int64[7]
    one: Batch  # what a tree is told: one event
    out: Out  # what it says
    votes: Int64s  # int64[c]
    weights: Float64s  # float64[c]


class Told(NamedTuple):
    """What a batch led to."""

    status: Int8s  # int8[n]
    predicted: Int32s  # int32[n]
    loss: Float64s  # float64[n]
    votes: Int64s  # int64[predictions asked for, c], in units of 2^-20
    counts: Int64s  # int64[1], predictions asked for so far


@jit
def _show(
    growing: Growing, rules: Rules, place: int, side: int, batch: Batch, hashes: Hashes, event: int, one: Batch
) -> None:
    """Write an example as a tree sees it."""
    draws = rules.draws
    salt = draws.salts[place % draws.salts.shape[0], FEATURES]
    salt = mix(salt, growing.places[place, NUMBER + side])
    end = int64(0)
    for at in range(batch.pointer[event], batch.pointer[event + 1]):
        if draws.share == ALL or mix(salt, int64(hashes.first[at])) < draws.share:
            one.feature[end] = batch.feature[at]
            one.value[end] = batch.value[at]
            one.kind[end] = batch.kind[at]
            end += 1
    one.pointer[1] = end
    one.key[0] = 2 * place + side
    one.label[0] = batch.label[event]


@jit
def _ask(
    growing: Growing,
    forest: Forest,
    rules: Rules,
    tree_rules: TreeRules,
    batch: Batch,
    hashes: Hashes,
    room: Room,
    place: int,
    side: int,
) -> bool:
    """Ask a tree of the event's example: `room.out` has its class weights; return whether it is wrong."""
    event = room.at[EVENT]
    _show(growing, rules, place, side, batch, hashes, event, room.one)
    room.one.op[0] = PREDICT
    room.out.counts[0] = 0
    grow.apply(forest, tree_rules, room.one, room.out, int64(0), False)
    return bool(room.out.predicted[0] != batch.label[event])


@inlined
def _note(growing: Growing, room: Room, place: int, side: int, wrong: bool) -> None:
    """Note whether a tree that was just asked is wrong; one that knows nothing is not."""
    if room.out.predicted[0] == NONE:
        return
    places = growing.places
    places[place, ASKED + side] += 1
    share = min(places[place, ASKED + side], RECENT)
    places[place, RIGHT + side] += ((0 if wrong else UNIT) - places[place, RIGHT + side]) // share


@jit
def _add_vote(growing: Growing, room: Room, place: int, side: int) -> None:
    """Add a tree's vote: 2^20 units, divided among the classes as in the leaf, less what it was lately wrong."""
    total = 0.0
    for k in range(room.votes.size):
        total += room.out.shares[0, k]
    if total > 0.0:
        right = int64(UNIT)
        if growing.places[place, ASKED + side] > 0:
            right = max(growing.places[place, RIGHT + side], int64(LEAST))
        for k in range(room.votes.size):
            room.votes[k] += (int64(room.out.shares[0, k] / total * UNIT) * right) >> 20


@jit
def _learn(
    growing: Growing,
    forest: Forest,
    rules: Rules,
    tree_rules: TreeRules,
    batch: Batch,
    hashes: Hashes,
    room: Room,
    place: int,
    side: int,
) -> int:
    """Let a tree learn the event's example; return what ran short."""
    event = room.at[EVENT]
    _show(growing, rules, place, side, batch, hashes, event, room.one)
    room.one.op[0] = INSERT
    room.one.weight[0] = room.at[TIMES] * batch.weight[event]
    _, attempt, short = grow.apply(forest, tree_rules, room.one, room.out, int64(0), room.at[ATTEMPT] == 1)
    if short in (DONE, TOLD):
        room.at[ATTEMPT] = 0
        return DONE
    room.at[ATTEMPT] = 1 if attempt else 0
    return short


@jit
def _drop_tree(forest: Forest, tree_rules: TreeRules, room: Room, place: int, side: int) -> None:
    room.one.op[0] = DROP
    room.one.key[0] = 2 * place + side
    room.one.pointer[1] = 0
    grow.apply(forest, tree_rules, room.one, room.out, int64(0), False)


@jit
def _begin_tree(growing: Growing, place: int, side: int) -> None:
    """Have a place begin another tree, which has learned nothing and sees other features."""
    places = growing.places
    places[place, MADE] += 1
    places[place, NUMBER + side] = places[place, MADE]
    places[place, RIGHT + side] = 0
    places[place, ASKED + side] = 0


@jit
def _watch(growing: Growing, forest: Forest, rules: Rules, tree_rules: TreeRules, room: Room, place: int) -> None:
    """Tell the detectors of a place whether its voter was wrong, and do what they say."""
    places = growing.places
    voter = places[place, VOTER]
    warned = adwin.add(growing.windows, 2 * place, room.at[WRONG], rules.warning)
    drifted = adwin.add(growing.windows, 2 * place + 1, room.at[WRONG], rules.drift)
    if drifted:
        places[place, DRIFTS] += 1
        _drop_tree(forest, tree_rules, room, place, voter)
        if places[place, BESIDE] == 1:
            places[place, VOTER] = 1 - voter
            places[place, BESIDE] = 0
        else:
            _begin_tree(growing, place, voter)
        adwin.begin(growing.windows, 2 * place)
        adwin.begin(growing.windows, 2 * place + 1)
    elif warned:
        places[place, WARNINGS] += 1
        if places[place, BESIDE] == 1:
            _drop_tree(forest, tree_rules, room, place, 1 - voter)
        places[place, BESIDE] = 1
        _begin_tree(growing, place, 1 - voter)


@jit
def _step(
    growing: Growing,
    forest: Forest,
    rules: Rules,
    tree_rules: TreeRules,
    batch: Batch,
    hashes: Hashes,
    room: Room,
    place: int,
) -> int:
    """Let a place have its part in an event, from its stage on; return what ran short."""
    at, event = room.at, room.at[EVENT]
    voter, beside = growing.places[place, VOTER], growing.places[place, BESIDE] == 1
    if at[STAGE] == _ASK:
        wrong = _ask(growing, forest, rules, tree_rules, batch, hashes, room, place, voter)
        _add_vote(growing, room, place, voter)  # as heavy as the tree was right before
        if batch.op[event] == PREDICT:
            return DONE
        _note(growing, room, place, voter, wrong)
        at[WRONG] = 1 if wrong else 0
        if beside:
            wrong = _ask(growing, forest, rules, tree_rules, batch, hashes, room, place, 1 - voter)
            _note(growing, room, place, 1 - voter, wrong)
        number = growing.keys[int64(batch.key[event]), EVENTS]
        drawn = ticket(number, number, int64(0))
        at[TIMES] = times(rules.draws, place % rules.draws.salts.shape[0], drawn, at[CHOSEN])
        at[CHOSEN] += at[TIMES]
        at[STAGE] = _LEARN
    if at[STAGE] == _LEARN:
        if at[TIMES] > 0:
            short = _learn(growing, forest, rules, tree_rules, batch, hashes, room, place, voter)
            if short != DONE:
                return short
        at[STAGE] = _LEARN_BESIDE
    if beside and at[TIMES] > 0:
        short = _learn(growing, forest, rules, tree_rules, batch, hashes, room, place, 1 - voter)
        if short != DONE:
            return short
    _watch(growing, forest, rules, tree_rules, room, place)
    return DONE


@inlined
def _refusal(growing: Growing, rules: Rules, batch: Batch, event: int) -> int:
    """Return the status of an insert that is to be learned."""
    key, label, weight = int64(batch.key[event]), int64(batch.label[event]), batch.weight[event]
    if weight < 0:
        return WRONG_WEIGHT
    if label < 0 or label >= rules.classes:
        return WRONG_LABEL
    if weight == 0:
        return IGNORED
    if growing.keys[key, ALIVE] == 0 and growing.alive[0] >= rules.max_keys:
        return TOO_MANY_KEYS
    if weight >= rules.max_weight - growing.keys[key, LEARNED]:
        return COUNT_OVERFLOW
    return APPLIED


@jit
def _drop(growing: Growing, forest: Forest, rules: Rules, tree_rules: TreeRules, room: Room, key: int) -> None:
    """Forget a key."""
    trees = rules.draws.salts.shape[0]
    for place in range(key * trees, (key + 1) * trees):
        for side in range(2):
            _drop_tree(forest, tree_rules, room, place, int64(side))
            adwin.begin(growing.windows, 2 * place + side)
        for column in range(PLACE_COLUMNS):
            growing.places[place, column] = 0
    growing.alive[0] -= growing.keys[key, ALIVE]
    for column in range(KEY_COLUMNS):
        growing.keys[key, column] = 0


@jit
def _count(batch: Batch, room: Room, told: Told, event: int) -> None:
    """Write what the votes on an example come to: most votes, the lowest class of equal ones."""
    best = int64(0)
    for k in range(room.votes.size):
        room.weights[k] = room.votes[k] * PER_UNIT
        if room.votes[k] > room.votes[best]:
            best = int64(k)
    told.predicted[event] = best if room.votes[best] > 0 else NONE
    if batch.op[event] == PREDICT:
        for k in range(room.votes.size):
            told.votes[told.counts[0], k] = room.votes[k]
        told.counts[0] += 1
    else:
        told.loss[event] = loss_of(room.weights, int64(batch.label[event]))


@jit
def apply(
    forest: Forest,
    growing: Growing,
    rules: Rules,
    tree_rules: TreeRules,
    batch: Batch,
    hashes: Hashes,
    room: Room,
    told: Told,
) -> int:
    """Apply events from where `room.at` is on; return what ran short, DONE at the end."""
    at = room.at
    trees = rules.draws.salts.shape[0]
    while at[EVENT] < batch.key.size:
        event = at[EVENT]
        op, key = batch.op[event], int64(batch.key[event])
        if at[PLACE] == 0 and at[STAGE] == _ASK:
            status = APPLIED
            if op == INSERT:
                status = _refusal(growing, rules, batch, event)
            elif op == DROP:
                _drop(growing, forest, rules, tree_rules, room, key)
            elif op != PREDICT:
                status = CANNOT_FORGET if op == DELETE else SKIPPED
            told.status[event] = status
            if status != APPLIED or op == DROP:
                at[EVENT] += 1
                continue
            if op == INSERT and growing.keys[key, ALIVE] == 0:
                growing.keys[key, ALIVE] = 1
                growing.alive[0] += 1
            at[CHOSEN] = 0
            for k in range(room.votes.size):
                room.votes[k] = 0
        while at[PLACE] < trees:
            short = _step(growing, forest, rules, tree_rules, batch, hashes, room, key * trees + at[PLACE])
            if short != DONE:
                return short
            at[PLACE] += 1
            at[STAGE] = _ASK
        _count(batch, room, told, event)
        if op == INSERT:
            growing.keys[key, EVENTS] += 1
            growing.keys[key, LEARNED] += batch.weight[event]
        at[PLACE] = 0
        at[EVENT] += 1
    return DONE

"""The loop of forests that grow: every tree is asked before it learns, and a drift of its errors replaces it.

::

    examples -> for each place:  ask its tree -> vote, as heavy as the tree has lately been right
                                 learn, as many times as it is drawn; so does the tree beside it
                                 warning: a new tree is begun beside it     drift: that one takes its place
             -> most votes

Each place in a forest has two trees in the pool, of which one votes. What is sampled follows from hashes: the
features that a tree sees from those of (seed, place, how many trees the place has had), how often an example
weighs in it from those of (seed, place, number of the example in its key).

The kernel of the trees is that of `TreePool`, and is called for many events of many trees at a time. What a place
does next depends on what its own tree says, but only where its detectors look: that is every 32 examples. So they
take turns:

::

    enter    which events are learned, how often in each place; until a snapshot is due
    plan     for each place, what its trees are told, up to the next look of its detectors
    the trees answer and learn
    watch    votes, errors, detectors; then what is left is planned, until nothing is
    count    the votes on each example

Places are in parts (parts.py). From plan to watch each part goes its own way, as no place reads what another does.
"""

from __future__ import annotations

from typing import NamedTuple

from algorithms.core.arrays import Float64s, Int8s, Int32s, Int64s, int64
from algorithms.core.cadence import is_due, next_period
from algorithms.core.events import (
    APPLIED,
    CANNOT_FORGET,
    COUNT_OVERFLOW,
    DELETE,
    DONE,
    DROP,
    INSERT,
    PREDICT,
    SKIPPED,
    TEST_THEN_TRAIN,
    TOLD,
    TOO_MANY_KEYS,
    Batch,
)
from algorithms.core.fixed_point import PER_UNIT, UNIT
from algorithms.core.hashing import mix
from algorithms.core.jit import inlined, jit
from algorithms.core.names import Names
from algorithms.core.stored import stored
from algorithms.forests.draws import ALL, FEATURES, Draws, ticket, times
from algorithms.forests.ledger import NONE, Hashes
from algorithms.trees.policies import adwin
from algorithms.trees.policies.adwin import Windows
from algorithms.trees.predict import loss_of
from algorithms.trees.refusals import refusal
from algorithms.trees.state import Out

# Columns of `Growing.keys`.
ALIVE = 0  # 1 once the key has learned something, until it is dropped
EVENTS = 1  # examples learned
LEARNED = 2  # their weight, in units
PERIOD = 3  # the period of event time that the last example was in, plus 1; 0: none yet
KEY_COLUMNS = 4

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
EVENT = 0  # the next to be entered
MOVES = 1  # events that were entered and are not counted yet
GROUPS = 2  # keys that they are of
DUE = 3  # 1: a snapshot is, once the moves are counted
STAGE = 4  # 1: the parts have begun with the moves

# Columns of `Desk.at`.
PLANNED = 0  # what the trees of a part were told last
DRIFTED = 1  # drifts in the batch so far

# Why the kernel stopped, beside `DONE` and `TOLD`.
TREES = 2  # the trees are to act
APART = 3  # there is so much to do that the parts are to go on apart

AT_ONCE = 2  # what trees are told of one event at most: both are asked, and learn

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
    """The settings of a forest, as its kernel sees them."""

    draws: Draws
    classes: int
    warning: float  # delta of the detectors, see adwin.py
    drift: float
    max_weight: int  # the weights of a key sum to less
    max_keys: int
    snapshot_when: int  # a `When`, but for `CHANGE`
    snapshot_argument: int


class Room(NamedTuple):
    """Scratch: events that were entered, which are moves."""

    at: Int64s  # int64[5]
    event: Int64s  # int64[moves], which event of the batch it is
    following: Int64s  # int64[moves], the next move of the same key, NONE after the last
    times: Int8s  # int8[moves, trees], how often an example weighs its weight in each place
    votes: Int64s  # int64[parts, moves, c], so far
    table: Int64s  # int64[twice the moves, a power of two], the groups by the hashes of their keys
    key: Int64s  # int64[groups], as many as there are moves
    first: Int64s  # int64[groups], the first move of each
    last: Int64s  # int64[groups], the last one
    weights: Float64s  # float64[c]


class Desk(NamedTuple):
    """Scratch: what trees are told and say, for each part a share of each array, one behind the other."""

    at: Int64s  # int64[parts, 2]
    begin: Int64s  # int64[parts x groups x T'], the move of each place that is to be planned next, or NONE
    stop: Int64s  # int64[parts x groups x T'], up to which move it is planned
    gone: Int8s  # int8[parts x groups x T'], bits: which of the two trees has lost its part and is still there
    told: Batch  # what trees are told
    said: Out  # what they say


class Place(NamedTuple):
    """A place, as its part has it."""

    number: int  # in `Growing.places`
    trees: int  # the number of its first tree in the pool of the part


class Told(NamedTuple):
    """What a batch led to."""

    status: Int8s  # int8[n]
    predicted: Int32s  # int32[n]
    loss: Float64s  # float64[n]
    votes: Int64s  # int64[predictions asked for, c], in units of 2^-20
    counts: Int64s  # int64[1], predictions asked for so far


# --- enter


@inlined
def _refused(growing: Growing, rules: Rules, batch: Batch, event: int) -> int:
    """Return the status of an insert that is to be learned."""
    key, label, weight = int64(batch.key[event]), int64(batch.label[event]), batch.weight[event]
    status = refusal(weight, label, rules.classes)
    if status != APPLIED:
        return status
    if growing.keys[key, ALIVE] == 0 and growing.alive[0] >= rules.max_keys:
        return TOO_MANY_KEYS
    if weight >= rules.max_weight - growing.keys[key, LEARNED]:
        return COUNT_OVERFLOW
    return APPLIED


@inlined
def _draw(growing: Growing, rules: Rules, room: Room, key: int, move: int) -> None:
    """Draw how often an example weighs in each place."""
    number = growing.keys[key, EVENTS]
    drawn = ticket(number, number, int64(0))
    chosen = int64(0)
    for tree in range(room.times.shape[1]):
        count = times(rules.draws, tree, drawn, chosen)
        chosen += count
        room.times[move, tree] = count


@inlined
def _group_of(room: Room, key: int) -> int:
    """Return the group of a key, a new one where it has none."""
    slot = mix(key, 1) & (room.table.size - 1)
    while room.table[slot] != NONE and room.key[room.table[slot]] != key:
        slot = (slot + 1) & (room.table.size - 1)
    group = room.table[slot]
    if group == NONE:
        group = room.at[GROUPS]
        room.at[GROUPS] += 1
        room.table[slot] = group
        room.key[group] = key
        room.last[group] = NONE
    return group


@inlined
def _move(room: Room, key: int, event: int) -> int:
    """Note an event in which the trees of a key have a part; return its place."""
    group, move = _group_of(room, key), room.at[MOVES]
    room.at[MOVES] += 1
    room.event[move] = event
    room.following[move] = NONE
    if room.last[group] == NONE:
        room.first[group] = move
    else:
        room.following[room.last[group]] = move
    room.last[group] = move
    return move


@inlined
def _is_snapshot_due(growing: Growing, rules: Rules, key: int, time: int) -> bool:
    """Return whether a snapshot is due after an example of a key."""
    when, argument = rules.snapshot_when, rules.snapshot_argument
    period = growing.keys[key, PERIOD] - 1
    growing.keys[key, PERIOD] = next_period(when, argument, time, period) + 1
    return is_due(when, argument, growing.keys[key, EVENTS], time, period)


@jit
def _enter(growing: Growing, rules: Rules, batch: Batch, room: Room, told: Told) -> None:
    """Enter events as long as there is room for moves and no snapshot is due."""
    at = room.at
    for slot in range(room.table.size):
        room.table[slot] = NONE
    at[GROUPS] = 0
    while at[EVENT] < batch.key.size and at[MOVES] < room.event.size and at[DUE] == 0:
        event = at[EVENT]
        at[EVENT] += 1
        op, key = batch.op[event], int64(batch.key[event])
        status = APPLIED
        if op == INSERT:
            status = _refused(growing, rules, batch, event)
        elif op != PREDICT and op != DROP:
            status = CANNOT_FORGET if op == DELETE else SKIPPED
        told.status[event] = status
        if status != APPLIED or (op == DROP and growing.keys[key, ALIVE] == 0):
            continue
        move = _move(room, key, event)
        if op == INSERT:
            growing.alive[0] += 1 - growing.keys[key, ALIVE]
            growing.keys[key, ALIVE] = 1
            _draw(growing, rules, room, key, move)
            growing.keys[key, EVENTS] += 1
            growing.keys[key, LEARNED] += batch.weight[event]
            at[DUE] = 1 if _is_snapshot_due(growing, rules, key, batch.time[event]) else 0
        elif op == DROP:
            growing.alive[0] -= 1
            for column in range(KEY_COLUMNS):
                growing.keys[key, column] = 0


# --- plan


@inlined
def _own(room: Room, desk: Desk, part: int) -> int:
    """Return T', how many places of a forest are in a part."""
    parts = desk.at.shape[0]
    return (room.times.shape[1] - part + parts - 1) // parts


@inlined
def _share(desk: Desk, part: int, size: int) -> int:
    """Return where the share of a part begins in an array of such a size."""
    return size // desk.at.shape[0] * part


@inlined
def _cells(room: Room, desk: Desk, part: int) -> tuple[int, int]:
    """Return where the places that events were entered for are in the share of a part, and end."""
    begin = _share(desk, part, desk.begin.size)
    return begin, begin + room.at[GROUPS] * _own(room, desk, part)


@inlined
def _place(room: Room, desk: Desk, part: int, index: int) -> Place:
    """Return one of the places that events were entered for."""
    own, parts = _own(room, desk, part), desk.at.shape[0]
    key = room.key[index // own]
    return Place(key * room.times.shape[1] + index % own * parts + part, 2 * (key * own + index % own))


@jit
def _tell(desk: Desk, part: int, number: int, op: int) -> int:
    """Tell a tree of an event without features; return where its pointer is."""
    told, planned = desk.told, desk.at[part, PLANNED]
    to = _share(desk, part, told.op.size) + planned
    at = _share(desk, part, told.pointer.size) + planned
    desk.at[part, PLANNED] += 1
    told.key[to] = number
    told.op[to] = op
    told.label[to] = 0
    told.weight[to] = UNIT
    told.pointer[at + 1] = told.pointer[at]
    return at


@jit
def _show(
    growing: Growing,
    rules: Rules,
    batch: Batch,
    hashes: Hashes,
    desk: Desk,
    part: int,
    place: Place,
    side: int,
    op: int,
    weight: int,
    event: int,
) -> None:
    """Tell a tree of an example as it sees it."""
    told = desk.told
    pointer = _tell(desk, part, place.trees + side, op)
    to = _share(desk, part, told.op.size) + desk.at[part, PLANNED] - 1
    told.label[to] = batch.label[event]
    told.weight[to] = weight
    salt = rules.draws.salts[place.number % rules.draws.salts.shape[0], FEATURES]
    salt = mix(salt, growing.places[place.number, NUMBER + side])
    first = _share(desk, part, told.feature.size)
    end = first + told.pointer[pointer]
    for at in range(batch.pointer[event], batch.pointer[event + 1]):
        if rules.draws.share == ALL or mix(salt, int64(hashes.first[at])) < rules.draws.share:
            told.feature[end] = batch.feature[at]
            told.value[end] = batch.value[at]
            told.kind[end] = batch.kind[at]
            end += 1
    told.pointer[pointer + 1] = end - first


@inlined
def _has_room(desk: Desk, part: int, ones: int) -> bool:
    """Return whether trees can be told of one more event with so many features."""
    told, planned, parts = desk.told, desk.at[part, PLANNED], desk.at.shape[0]
    entries = told.pointer[_share(desk, part, told.pointer.size) + planned]
    return planned + AT_ONCE <= told.op.size // parts and entries + AT_ONCE * ones <= told.feature.size // parts


@jit
def _plan_place(
    growing: Growing,
    rules: Rules,
    batch: Batch,
    hashes: Hashes,
    room: Room,
    desk: Desk,
    part: int,
    cell: int,
    place: Place,
) -> bool:
    """Plan what the trees of a place are told, up to the next look; return whether there was room for it."""
    tree = place.number % room.times.shape[1]
    if not _has_room(desk, part, int64(0)):
        return False
    for side in range(2):
        if desk.gone[cell] >> side & 1:
            _tell(desk, part, place.trees + side, int64(DROP))
    voter, beside = growing.places[place.number, VOTER], growing.places[place.number, BESIDE] == 1
    other = 1 - voter
    # Those of a place look at the same time.
    looks = adwin.EVERY - growing.windows.sums[2 * place.number, adwin.CLOCK]
    move = desk.begin[cell]
    while move != NONE and looks > 0:
        event = room.event[move]
        op = batch.op[event]
        if not _has_room(desk, part, batch.pointer[event + 1] - batch.pointer[event]):
            return False
        if op == DROP:
            _tell(desk, part, place.trees + voter, int64(DROP))
            _tell(desk, part, place.trees + other, int64(DROP))
            looks = int64(0)  # it begins anew
        else:
            learns = op == INSERT and room.times[move, tree] > 0
            told = int64(TEST_THEN_TRAIN if learns else PREDICT)
            weight = room.times[move, tree] * batch.weight[event] if learns else int64(UNIT)
            _show(growing, rules, batch, hashes, desk, part, place, voter, told, weight, event)
            if op == INSERT and beside:
                _show(growing, rules, batch, hashes, desk, part, place, other, told, weight, event)
            looks -= int64(op == INSERT)
        move = room.following[move]
        desk.stop[cell] = move
    return True


@jit
def _plan(growing: Growing, rules: Rules, batch: Batch, hashes: Hashes, room: Room, desk: Desk, part: int) -> None:
    """Plan what the trees of all places of a part are told, as far as there is room."""
    desk.at[part, PLANNED] = 0
    desk.told.pointer[_share(desk, part, desk.told.pointer.size)] = 0
    has_room = True
    first, end = _cells(room, desk, part)
    for cell in range(first, end):
        desk.stop[cell] = desk.begin[cell]
        if has_room and (desk.begin[cell] != NONE or desk.gone[cell] != 0):
            place = _place(room, desk, part, int64(cell) - first)
            has_room = _plan_place(growing, rules, batch, hashes, room, desk, part, int64(cell), place)


# --- watch


@inlined
def _note(growing: Growing, place: int, side: int, predicted: int, label: int) -> None:
    """Note whether a tree that was just asked is right; one that knows nothing is neither."""
    if predicted == NONE:
        return
    places = growing.places
    places[place, ASKED + side] += 1
    share = min(places[place, ASKED + side], RECENT)
    places[place, RIGHT + side] += ((UNIT if predicted == label else 0) - places[place, RIGHT + side]) // share


@jit
def _add_vote(
    growing: Growing, room: Room, shares: Float64s, part: int, place: int, side: int, asked: int, move: int
) -> None:
    """Add a tree's vote: 2^20 units, divided among the classes as in the leaf, less what it was lately wrong."""
    total = 0.0
    for k in range(shares.shape[1]):
        total += shares[asked, k]
    if total > 0.0:
        right = int64(UNIT)
        if growing.places[place, ASKED + side] > 0:
            right = max(growing.places[place, RIGHT + side], int64(LEAST))
        for k in range(shares.shape[1]):
            room.votes[part, move, k] += (int64(shares[asked, k] / total * UNIT) * right) >> 20


@jit
def _begin_tree(growing: Growing, place: int, side: int) -> None:
    """Have a place begin another tree, which has learned nothing and sees other features."""
    places = growing.places
    places[place, MADE] += 1
    places[place, NUMBER + side] = places[place, MADE]
    places[place, RIGHT + side] = 0
    places[place, ASKED + side] = 0


@jit
def _detect(growing: Growing, rules: Rules, place: int, wrong: int) -> int:
    """Tell the detectors of a place whether its voter was wrong, and do what they say.

    Return which tree has lost its part, NONE where both go on.
    """
    places = growing.places
    voter = places[place, VOTER]
    warned = adwin.add(growing.windows, 2 * place, wrong, rules.warning)
    drifted = adwin.add(growing.windows, 2 * place + 1, wrong, rules.drift)
    gone = int64(NONE)
    if drifted:
        places[place, DRIFTS] += 1
        gone = voter
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
            gone = 1 - voter
        places[place, BESIDE] = 1
        _begin_tree(growing, place, 1 - voter)
    return gone


@jit
def _forget_place(growing: Growing, place: int) -> None:
    for window in range(2 * place, 2 * place + 2):
        adwin.begin(growing.windows, window)
    for column in range(PLACE_COLUMNS):
        growing.places[place, column] = 0


@jit
def _watch(growing: Growing, rules: Rules, batch: Batch, room: Room, desk: Desk, part: int) -> None:
    """Read what the trees of a part said of what was planned, place by place, in the same order."""
    predictions, shares = desk.said.predicted, desk.said.shares
    to = _share(desk, part, predictions.size)  # in what was planned
    stop = to + desk.at[part, PLANNED]
    asked = _share(desk, part, shares.shape[0])  # in what was asked of it
    first, end = _cells(room, desk, part)
    for cell in range(first, end):
        place = _place(room, desk, part, int64(cell) - first).number
        if to < stop:  # else there was no room to plan it
            gone = int64(desk.gone[cell])
            to += (gone & 1) + (gone >> 1)
            desk.gone[cell] = 0
        move = desk.begin[cell]
        while move != desk.stop[cell]:
            event = room.event[move]
            op, label = batch.op[event], int64(batch.label[event])
            voter, beside = growing.places[place, VOTER], growing.places[place, BESIDE]
            if op == DROP:
                to += 2
                _forget_place(growing, place)
            else:
                predicted = int64(predictions[to])
                # As heavy as the tree was right before.
                _add_vote(growing, room, shares, part, place, voter, asked, move)
                to += 1
                asked += 1
            if op == INSERT:
                _note(growing, place, voter, predicted, label)
                if beside == 1:
                    _note(growing, place, 1 - voter, int64(predictions[to]), label)
                to += beside
                asked += beside
                gone = _detect(growing, rules, place, int64(1) if predicted != label else int64(0))
                if gone != NONE:
                    desk.gone[cell] |= 1 << gone
                    desk.at[part, DRIFTED] += 1
            move = room.following[move]
        desk.begin[cell] = move


# --- count


@jit
def _count(batch: Batch, room: Room, told: Told) -> None:
    """Write what the votes on what was entered come to: most votes, the lowest class of equal ones."""
    votes = room.votes
    for move in range(room.at[MOVES]):
        event, best = room.event[move], int64(0)
        if batch.op[event] == DROP:
            continue
        for k in range(votes.shape[2]):
            for part in range(1, votes.shape[0]):
                votes[0, move, k] += votes[part, move, k]
            room.weights[k] = votes[0, move, k] * PER_UNIT
            if votes[0, move, k] > votes[0, move, best]:
                best = int64(k)
        told.predicted[event] = best if votes[0, move, best] > 0 else NONE
        if batch.op[event] == PREDICT:
            for k in range(votes.shape[2]):
                told.votes[told.counts[0], k] = votes[0, move, k]
            told.counts[0] += 1
        else:
            told.loss[event] = loss_of(room.weights, int64(batch.label[event]))
    room.at[MOVES] = 0


# --- all of it


@inlined
def _begin(room: Room, desk: Desk, part: int) -> None:
    """Begin with what was entered."""
    own = _own(room, desk, part)
    first, end = _cells(room, desk, part)
    for cell in range(first, end):
        desk.begin[cell] = room.first[(cell - first) // own]
        desk.gone[cell] = 0
    for move in range(room.at[MOVES]):
        for k in range(room.votes.shape[2]):
            room.votes[part, move, k] = 0


@jit
def go_on(
    growing: Growing, rules: Rules, batch: Batch, hashes: Hashes, room: Room, desk: Desk, part: int, is_new: bool
) -> int:
    """Begin or go on with what was entered, in the places of a part; return how much its trees are told."""
    if is_new:
        _begin(room, desk, part)
    else:
        _watch(growing, rules, batch, room, desk, part)
    _plan(growing, rules, batch, hashes, room, desk, part)
    return desk.at[part, PLANNED]


@jit
def apply(
    growing: Growing, rules: Rules, batch: Batch, hashes: Hashes, room: Room, desk: Desk, told: Told, most: int
) -> tuple[int, int]:
    """Go on with a batch.

    Return which event is next, and why it stopped: TREES where the trees are to act, APART where more than `most`
    moves times trees were entered and each part is to `go_on` until its trees are told nothing, TOLD where a
    snapshot is due after the event before, DONE at the end.
    """
    at = room.at
    while True:
        is_new = at[STAGE] == 0
        if is_new:
            _enter(growing, rules, batch, room, told)
            at[STAGE] = 1
            if at[MOVES] * room.times.shape[1] > most:
                return at[EVENT], APART
        planned = int64(0)
        for part in range(desk.at.shape[0]):
            if is_new or desk.at[part, PLANNED] > 0:
                planned += go_on(growing, rules, batch, hashes, room, desk, int64(part), is_new)
        if planned > 0:
            return at[EVENT], TREES
        _count(batch, room, told)
        at[STAGE] = 0
        if at[DUE] == 1:
            at[DUE] = 0
            return at[EVENT], TOLD
        if at[EVENT] == batch.key.size:
            return at[EVENT], DONE

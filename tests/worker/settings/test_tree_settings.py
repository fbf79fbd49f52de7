"""Settings of trees, which grow or forget: defaults, names of the field, problems."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from algorithms.core.kinds import Kind
from algorithms.dynamic.feasibility import UNBOUNDED_WITH
from algorithms.trees.policies import adwin
from tests.worker.settings.test_settings import SMALLEST, _load, _problems
from worker.epochs import compare, first_epoch
from worker.log.port import TopicPartition
from worker.pipeline import Pipeline
from worker.settings import fingerprint
from worker.settings.by_kind import kind_of
from worker.settings.models import DynamicTreeSettings, ForestSettings, GrowingForestSettings, TreeSettings
from worker.settings.values import Cadence

# The shortest tree, lines 4 to 8.
TREE = SMALLEST.replace("kind: split", "kind: tree")
TREE_NAMES = (
    "attributes, candidates, check_every, classes, criterion, drop_poor, emit, evaluate, expire, features, "
    "grace_period, inherit, input, kind, late_labels, local_range, max_depth, memory_limit, on_delete, policy, "
    "predict, shadow, split_confidence, start, "
    "tie_threshold"
)
UNWATCHED = (
    "113ecfb1674de0da0907ff9726cebdbacddb6e8525524b59f310a00f25a74e37"  # with evaluate: {window: 5}, as ever
)
UNQUANTISED = "511e42a4b9e71e48e7b9e45768b853c03f59c6841c0e593869dab52c4e4dc69c"  # of that with numeric: [a]
OTHERS = "(periodic, osm, imac, efdt, efdt-imac, hat or hat-imac)"


def test_tree_defaults(tmp_path: Path) -> None:
    """A tree of binary features, grown as IMAC does, is what the smallest section describes."""
    model = _load(tmp_path, TREE).models["spam"]
    assert isinstance(model, TreeSettings)
    assert (model.policy, model.criterion, model.predict, model.on_delete) == (
        "imac",
        "entropy",
        "majority",
        "reject",
    )
    assert (model.grace_period, model.check_every, model.split_confidence, model.tie_threshold) == (
        200,
        200,
        1e-7,
        0.05,
    )
    assert (model.evaluate, model.memory_limit, model.attributes.kinds) == (None, None, {})
    assert (model.emit.splits, model.emit.snapshots) == ("change", Cadence("never"))
    told = _load(tmp_path, TREE + "    attributes: {default: nominal, numeric: [price], binary: [new]}\n").models[
        "spam"
    ]
    assert isinstance(told, TreeSettings)
    assert told.attributes.kinds == {b"price": Kind.NUMERIC, b"new": Kind.BINARY}


ALIASES = [("grace_period", "period", 50), ("split_confidence", "delta", 0.01), ("tie_threshold", "tau", 0.2)]


@pytest.mark.parametrize(("name", "alias", "value"), ALIASES)
def test_names_of_the_field(tmp_path: Path, name: str, alias: str, value: float) -> None:
    """A setting may be called as the field does: value, bounds and fingerprint are the same; also in variables."""
    ours, theirs = (_load(tmp_path, f"{TREE}    {each}: {value}\n") for each in (name, alias))
    assert getattr(theirs.models["spam"], name) == value
    assert theirs.models == ours.models
    assert fingerprint(theirs) == fingerprint(ours) != fingerprint(_load(tmp_path, TREE))
    by_variable = _load(tmp_path, TREE, **{f"ANABRANCH_MODELS__SPAM__{alias.upper()}": str(value)})
    assert by_variable.models == ours.models
    own, others = (
        [problem.replace(each, "it") for problem in _problems(tmp_path, f"{TREE}    {each}: -1\n")]
        for each in (name, alias)
    )
    assert len(own) == len(others) == 1
    assert own[0].replace(f"9:{5 + len(name) + 2}", "9:x") == others[0].replace(f"9:{5 + len(alias) + 2}", "9:x")


@pytest.mark.parametrize(("name", "alias", "value"), ALIASES)
@pytest.mark.parametrize("swapped", [False, True])
def test_both_names_of_a_setting(tmp_path: Path, name: str, alias: str, value: float, swapped: bool) -> None:
    """A setting that is given twice, by both of its names, is a problem of its own."""
    lines = [f"    {name}: {value}\n", f"    {alias}: {value}\n"]
    text = TREE + "".join(reversed(lines) if swapped else lines)
    assert _problems(tmp_path, text) == [
        f"worker.yaml:{9 if swapped else 10}:5: models.spam.{alias}: expected either '{name}' or '{alias}', "
        "two names of one setting, got both"
    ]


def test_the_nearest_name_may_be_one_of_the_field(tmp_path: Path) -> None:
    """A mistake in a name of the field is told with that name; a kind without it says who has it."""
    assert _problems(tmp_path, f"{TREE}    grace_perod: 5\n") == [
        f"worker.yaml:9:5: models.spam.grace_perod: expected one of {TREE_NAMES}, got 'grace_perod' "
        "(did you mean 'grace_period'?)"
    ]
    forgetting = TREE.replace("kind: tree", "kind: dynamic-tree")
    assert _problems(tmp_path, f"{forgetting}    tie_threshold: 0.1\n") == [
        "worker.yaml:9:5: models.spam.tie_threshold: expected no 'tie_threshold' (a model of kind 'tree' has it), "
        "got 'tie_threshold'"
    ]


@pytest.mark.parametrize(
    ("attributes", "radius", "fraction"),
    [
        ("{quantised: [price]}", None, 0.5),
        ("{default: quantised, radius_fraction: 0.25}", None, 0.25),
        ("{quantised: [price], radius: 2}", 2.0, None),
        ("{quantised: [price], radius: null}", None, 0.5),
        ("{numeric: [price], quantised: []}", None, None),
    ],
)
def test_slots_of_quantised_features_have_a_width(
    tmp_path: Path, attributes: str, radius: float | None, fraction: float | None
) -> None:
    """It is given, or a share of the deviation of the values; where no feature has slots there is neither."""
    model = _load(tmp_path, f"{TREE}    attributes: {attributes}\n").models["spam"]
    assert isinstance(model, TreeSettings)
    assert (model.attributes.radius, model.attributes.radius_fraction) == (radius, fraction)
    assert not model.attributes.only_binary
    if model.attributes.quantised:
        assert model.attributes.kinds == {b"price": Kind.QUANTISED}


def test_what_a_tree_uses_tells_in_the_fingerprint(tmp_path: Path) -> None:
    """What a tree is told beyond the first version's settings changes the fingerprint; else older ones hold."""
    plain = "attributes: {numeric: [a]}"
    same = {
        plain,
        "attributes: {numeric: [a], quantised: [], radius: null}",
        f"{plain}\n    drop_poor: false\n    inherit: false\n    local_range: false\n    candidates: null",
    }
    others = {
        "attributes: {numeric: [a], quantised: [b]}",
        "attributes: {numeric: [a], quantised: [b], radius: 0.5}",
        "attributes: {numeric: [a], quantised: [b], radius_fraction: 0.25}",
        f"{plain}\n    drop_poor: true",
        f"{plain}\n    inherit: true",
        f"{plain}\n    candidates: 5",
        f"{plain}\n    local_range: true",
    }
    assert len({fingerprint(_load(tmp_path, f"{TREE}    {each}\n")) for each in same}) == 1
    assert len({fingerprint(_load(tmp_path, f"{TREE}    {each}\n")) for each in {plain, *others}}) == 8
    spelt_out = _load(tmp_path, f"{TREE}    attributes: {{numeric: [a], quantised: [b], radius_fraction: 0.5}}\n")
    left_out = _load(tmp_path, f"{TREE}    attributes: {{numeric: [a], quantised: [b]}}\n")
    assert fingerprint(spelt_out) == fingerprint(left_out)
    assert fingerprint(_load(tmp_path, f"{TREE}    {plain}\n")) == UNQUANTISED


@pytest.mark.parametrize(
    ("added", "problem"),
    [
        ("polcy: imac", f"9:5: .polcy: expected one of {TREE_NAMES}, got 'polcy' (did you mean 'policy'?)"),
        (
            "window: 5",
            "9:5: .window: expected no 'window' (a tree cannot forget; kinds 'dynamic-tree' and 'split' can), "
            "got 'window'",
        ),
        (
            "evaluate: {windw: 5}",
            "9:16: .evaluate.windw: expected one of drift, emit, window, got 'windw' (did you mean 'window'?)",
        ),
        (
            "evaluate: {emit: change}",
            "9:22: .evaluate.emit: expected 'never', {every: N} or {every_ms: T} with a number from 1, "
            "got 'change'",
        ),
        (
            "attributes: {nominal: [1]}",
            "9:17: .attributes: expected features as names, as 'features' says, got a mapping",
        ),
        (
            "attributes: {nominal: [a], numeric: [a]}",
            "9:17: .attributes: expected each feature once, got a mapping",
        ),
        (
            "attributes: {nominal: [-1]}",
            "9:28: .attributes.nominal.0: expected a feature: an id from 0 to 4294967295, or a name, got -1",
        ),
        (
            "attributes: {quantised: [a], numeric: [a]}",
            "9:17: .attributes: expected each feature once, got a mapping",
        ),
        (
            "attributes: {numeric: [a], radius: 0.5}",
            "9:40: .attributes.radius: expected no radius, which only quantised features have a use for, got 0.5",
        ),
        (
            "attributes: {radius_fraction: 0.5}",
            "9:35: .attributes.radius_fraction: expected no radius_fraction, which only quantised features have a "
            "use for, got 0.5",
        ),
        (
            "attributes: {quantised: [a], radius: 2, radius_fraction: 0.5}",
            "9:62: .attributes.radius_fraction: expected no radius_fraction beside a radius, which is that of all "
            "quantised features, got 0.5",
        ),
        (
            "attributes: {quantised: [a], radius: 0}",
            "9:42: .attributes.radius: expected more than 0.0, got 0",
        ),
        (
            "attributes: {quantised: [a], radius_fraction: 101}",
            "9:51: .attributes.radius_fraction: expected 100.0 or less, got 101",
        ),
        (
            "attributes: {quantised: [a]}\n    policy: exact",
            f"10:13: .policy: expected a policy for nominal and numeric features {OTHERS}, got 'exact'",
        ),
        (
            "attributes: {numeric: [a]}\n    policy: exact",
            f"10:13: .policy: expected a policy for nominal and numeric features {OTHERS}, got 'exact'",
        ),
        (
            "policy: efdt\n    memory_limit: 9000000",
            "10:19: .memory_limit: expected none with the policy 'efdt', where an example is counted in more than "
            "one node, got 9000000",
        ),
        (
            "policy: hat\n    memory_limit: 9000000",
            "10:19: .memory_limit: expected none with the policy 'hat', where an example is counted in more than "
            "one node, got 9000000",
        ),
        (
            "policy: osm\n    candidates: 3",
            "10:17: .candidates: expected none with the policy 'osm', only imac, efdt-imac, hat-imac have "
            "candidates, got 3",
        ),
        ("candidates: 1", "9:17: .candidates: expected 2 or more, got 1"),
        (
            "criterion: gini\n    local_range: true",
            "10:18: .local_range: expected false with the criterion gini, whose range is 1 whatever the classes, "
            "got true",
        ),
        (
            "policy: efdt\n    drop_poor: true",
            "10:16: .drop_poor: expected false with the policy 'efdt', which needs all features, got true",
        ),
        ("split_confidence: 1.0", "9:23: .split_confidence: expected less than 1.0, got 1.0"),
        ("emit: {splits: {every: 3}}", "9:20: .emit.splits: expected 'change' or 'never', got a mapping"),
    ],
)
def test_tree_problems(tmp_path: Path, added: str, problem: str) -> None:
    """What a tree cannot be told is refused, with the place and what would be right."""
    expected = problem.replace(" .", " models.spam.", 1)
    assert _problems(tmp_path, f"{TREE}    {added}\n") == [f"worker.yaml:{expected}"]


def test_tree_classes(tmp_path: Path) -> None:
    """A tree has 2 to 1,000 classes; the exact policy serves two."""
    three = TREE.replace("[ham, spam]", "[a, b, c]")
    model = _load(tmp_path, three).models["spam"]
    assert isinstance(model, TreeSettings)
    assert model.classes == ("a", "b", "c")
    assert _problems(tmp_path, f"{three}    policy: exact\n") == [
        f"worker.yaml:9:13: models.spam.policy: expected a policy for more than two classes {OTHERS}, got 'exact'"
    ]
    for wrong in ("[a]", "[a, a]", "[a, 1]"):
        (problem,) = _problems(tmp_path, TREE.replace("[ham, spam]", wrong))
        assert "expected 2 to 1000 different classes, all integers or all strings" in problem


# The shortest tree that forgets, lines 4 to 8.
DYNAMIC = SMALLEST.replace("kind: split", "kind: dynamic-tree")


def test_dynamic_trees(tmp_path: Path) -> None:
    """Settings of a tree that forgets have defaults that work, and are what the file says."""
    model = _load(tmp_path, DYNAMIC).models["spam"]
    assert isinstance(model, DynamicTreeSettings)
    assert (model.criterion, model.epsilon, model.max_depth, model.window) == ("gini", 0.1, 10, None)
    told = _load(tmp_path, f"{DYNAMIC}    window: 20\n    alpha: 0.5\n    beta: 0.5\n    epsilon: 0.01\n").models[
        "spam"
    ]
    assert isinstance(told, DynamicTreeSettings)
    assert (told.window, told.alpha, told.beta, told.epsilon) == (20, 0.5, 0.5, 0.01)


@pytest.mark.parametrize(
    ("added", "epsilon", "summary"),
    [
        ("{}", 0.1, "epsilon 0.1, gini, 2 classes"),
        ("{guarantee: exact}", None, "exact, gini, 2 classes"),
        ("{beta: 0.02}", None, "beta 0.02, gini, 2 classes"),
        ("{beta: 0.02, criterion: entropy, alpha: 0.3}", None, "beta 0.02, entropy, 2 classes"),
    ],
)
def test_when_a_tree_that_forgets_is_rebuilt(
    tmp_path: Path, added: str, epsilon: float | None, summary: str
) -> None:
    """By the clock unless a guarantee or a beta says when; settings that are kept are taken again."""
    lines = "".join(f"    {name}: {value}\n" for name, value in yaml.safe_load(added).items())
    model = _load(tmp_path, DYNAMIC + lines).models["spam"]
    assert isinstance(model, DynamicTreeSettings)
    assert (model.epsilon, model.summary) == (epsilon, summary)
    assert ("guarantee" in model.relevant()) == ("guarantee" in added)
    assert DynamicTreeSettings.model_validate_json(model.model_dump_json()) == model
    forest = _load(tmp_path, DYNAMIC.replace("dynamic-tree", "forest") + lines).models["spam"]
    assert isinstance(forest, ForestSettings)
    assert (forest.epsilon, forest.summary) == (epsilon, f"10 trees, poisson:6, subspace 0.6, {summary}")


def test_how_much_an_event_may_rebuild(tmp_path: Path) -> None:
    """Nothing bounds it unless the settings do, and then it is another model, as its answers may be others."""
    model = _load(tmp_path, DYNAMIC).models["spam"]
    bounded = _load(tmp_path, f"{DYNAMIC}    max_work: 65536\n").models["spam"]
    assert isinstance(model, DynamicTreeSettings)
    assert isinstance(bounded, DynamicTreeSettings)
    assert (model.max_work, bounded.max_work) == (None, 65536)
    assert "max_work" not in model.relevant()
    assert bounded.relevant() == model.relevant() | {"max_work": 65536}
    numbers = f"{DYNAMIC}    attributes: {{default: numeric}}\n    max_work: 64\n"
    assert _load(tmp_path, numbers).models["spam"].relevant()["max_work"] == 64
    clocked = f"{DYNAMIC}    alpha: 1\n    beta: 1\n    epsilon: 0.01\n    max_work: 4096\n"
    assert _load(tmp_path, clocked).models["spam"].relevant()["max_work"] == 4096


@pytest.mark.parametrize(
    ("added", "problem"),
    [
        ("epsilon: -1", "9:14: .epsilon: expected 0.0 or more, got -1"),
        (
            "epsilon: 0.1\n    beta: 0.5",
            "10:11: .beta: expected 0, which promises nothing, or beside it an alpha above 0, got 0.5",
        ),
        ("guarantee: near", "9:16: .guarantee: expected 'exact', got 'near'"),
        (
            "guarantee: exact\n    epsilon: 0.1",
            "9:16: .guarantee: expected null, or no epsilon beside it, got 'exact'",
        ),
        (
            "guarantee: exact\n    epsilon: 0",
            "9:16: .guarantee: expected null, or no epsilon beside it, got 'exact'",
        ),
        ("guarantee: exact\n    beta: 0.1", "9:16: .guarantee: expected null, or no beta beside it, got 'exact'"),
        (
            "alpha: 0.5\n    epsilon: 0.1\n    beta: 0.5",
            "11:11: .beta: expected 0, which promises nothing, or beside it an epsilon below 0.04, the least of "
            "1 / (min_examples + 1), alpha / 5 and beta / 12.5, got 0.5",
        ),
        (
            "criterion: entropy\n    epsilon: 0.1\n    beta: 0.5",
            "11:11: .beta: expected 0, which promises nothing, or beside it the criterion gini, whose gains are "
            "the ones that the proof bounds, got 0.5",
        ),
        ("max_work: 63", "9:15: .max_work: expected 64 or more, got 63"),
        *(
            (f"{beside}\n    max_work: 65536", f"10:15: .max_work: expected null {UNBOUNDED_WITH}, got 65536")
            for beside in ("guarantee: exact", "beta: 0.1")
        ),
        (
            "attributes: {quantised: [a]}",
            "9:17: .attributes: expected a radius beside quantised features of kind 'dynamic-tree', which rounds "
            "to multiples of it, got a mapping",
        ),
    ],
)
def test_dynamic_tree_problems(tmp_path: Path, added: str, problem: str) -> None:
    """What a tree that forgets cannot be told is refused, with the place and what would be right."""
    expected = problem.replace(" .", " models.spam.", 1)
    assert _problems(tmp_path, f"{DYNAMIC}    {added}\n") == [f"worker.yaml:{expected}"]


# The shortest forest, lines 4 to 8.
FOREST = SMALLEST.replace("kind: split", "kind: forest")


def test_forests(tmp_path: Path) -> None:
    """Settings of a forest have defaults that work, and are what the file says."""
    model = _load(tmp_path, FOREST).models["spam"]
    assert isinstance(model, ForestSettings)
    assert (model.trees, model.bagging, model.subspace, model.seed) == (10, "poisson:6", 0.6, 0)
    assert model.summary == "10 trees, poisson:6, subspace 0.6, epsilon 0.1, gini, 2 classes"
    added = "    trees: 100\n    bagging: 10 of 100\n    subspace: sqrt of 54\n    window: 50\n    seed: 3\n"
    told = _load(tmp_path, FOREST + added).models["spam"]
    assert isinstance(told, ForestSettings)
    assert (told.trees, told.bagging, told.subspace, told.seed) == (100, "10 of 100", "sqrt of 54", 3)
    whole = _load(tmp_path, FOREST + "    subspace: 1\n").models["spam"]
    assert isinstance(whole, ForestSettings)
    assert whole.relevant()["subspace"] == 1.0


@pytest.mark.parametrize("of", ["", "    of: {kind: tree}\n"])
def test_threads_of_a_forest_tell_nothing_of_its_results(tmp_path: Path, of: str) -> None:
    """Fingerprints and epochs are the same with any number, so that it may be another one at each start."""
    plain = _load(tmp_path, FOREST + of)
    told = _load(tmp_path, f"{FOREST}{of}    threads: 4\n")
    assert [each.models["spam"].model_dump()["threads"] for each in (plain, told)] == [1, 4]
    assert fingerprint(plain) == fingerprint(told)
    begun = first_epoch(plain, "sms", 0, 0, "")
    assert begun == first_epoch(told, "sms", 0, 0, "")
    assert not compare(begun, told, "sms").is_any
    run = Pipeline(TopicPartition("sms", 0), told, lambda: 0.0)
    run.have(begun.parsed() or {}, begun.parsed_bounds, None)
    model: Any = run.models[0]
    assert model._pool.parts.crew.threads == 4


@pytest.mark.parametrize(
    ("added", "problem"),
    [
        ("trees: 0", "9:12: .trees: expected 1 or more, got 0"),
        ("trees: 0\n    bagging: 3 of 10", "9:12: .trees: expected 1 or more, got 0"),
        (
            "bagging: 3 of 9",
            "9:14: .bagging: expected none, poisson:1, poisson:6 (a whole number up to 10), or k of T trees as in "
            "'3 of 10', where there are 10 trees, got '3 of 9'",
        ),
        (
            "trees: 20\n    bagging: 6",
            "10:14: .bagging: expected none, poisson:1, poisson:6 (a whole number up to 10), or k of T trees as "
            "in '3 of 10', where there are 20 trees, got 6",
        ),
        (
            "subspace: 1.5",
            "9:15: .subspace: expected a share above 0 and up to 1, or 'sqrt of D' where there are D features, "
            "got 1.5",
        ),
        (
            "subspace: sqrt",
            "9:15: .subspace: expected a share above 0 and up to 1, or 'sqrt of D' where there are D features, "
            "got 'sqrt'",
        ),
        ("threads: 0", "9:14: .threads: expected 1 or more, got 0"),
        ("threads: 5", "9:14: .threads: expected 4 or less, got 5"),
        (
            "guarantee: exact\n    max_work: 4096",
            f"10:15: .max_work: expected null {UNBOUNDED_WITH}, got 4096",
        ),
        (
            "emit: {snapshots: change}",
            "9:23: .emit.snapshots: expected 'never', {every: N} or {every_ms: T} with a number from 1, as some "
            "tree always changes, got 'change'",
        ),
        (
            "attributes: {quantised: [a]}",
            "9:17: .attributes: expected a radius beside quantised features of kind 'forest', which rounds to "
            "multiples of it, got a mapping",
        ),
    ],
)
def test_forest_problems(tmp_path: Path, added: str, problem: str) -> None:
    """What a forest cannot be told is refused, with the place and what would be right."""
    expected = problem.replace(" .", " models.spam.", 1)
    assert _problems(tmp_path, f"{FOREST}    {added}\n") == [f"worker.yaml:{expected}"]


# The shortest forest of trees that grow, lines 4 to 9.
GROWING = f"{FOREST}    of: {{kind: tree}}\n"


def test_forests_that_grow(tmp_path: Path) -> None:
    """A forest with `of` has settings of its own, and is another kind to whoever has to know."""
    model = _load(tmp_path, GROWING).models["spam"]
    assert isinstance(model, GrowingForestSettings)
    assert (model.kind, kind_of(type(model))) == ("forest", "forest of tree")
    assert (model.trees, model.of.policy, model.of.grace_period) == (10, "periodic", 10)
    assert model.on_delete == "reject"
    assert model.summary == "periodic, gini, 10 trees, poisson:6, subspace 0.6, 2 classes"
    added = (
        "{kind: tree, policy: exact, criterion: entropy, local_range: true}\n    warning: 0.1\n    drift: 0.01\n"
    )
    told = _load(tmp_path, GROWING.replace("{kind: tree}\n", added)).models["spam"]
    assert isinstance(told, GrowingForestSettings)
    assert (told.of.policy, told.warning, told.drift) == ("exact", 0.1, 0.01)
    assert told.relevant()["of"]["local_range"] is True


@pytest.mark.parametrize(
    ("of", "added", "problem"),
    [
        (
            "kind: dynamic-tree",
            "",
            "9:16: .of.kind: expected 'tree' (a forest without 'of' is one of dynamic trees)",
        ),
        ("kind: tree, policy: hat", "", "9:30: .of.policy: expected 'periodic', 'osm', 'imac' or 'exact'"),
        (
            "kind: tree, policy: exact",
            "attributes: {numeric: [a]}",
            "9:9: .of: expected trees with a policy for nominal and numeric features (periodic, osm or imac)",
        ),
        (
            "kind: tree, local_range: true",
            "",
            "9:35: .of.local_range: expected false with the criterion gini, whose range is 1 whatever the classes",
        ),
        (
            "kind: tree, candidates: 5",
            "",
            "9:22: .of.candidates: expected no 'candidates' (a tree that is alone has it)",
        ),
        ("kind: tree", "drift: 0", "10:12: .drift: expected more than 0.0"),
        (
            "kind: tree",
            "window: 5",
            "10:5: .window: expected no 'window' (trees that grow cannot forget; a forest without 'of' can)",
        ),
        (
            "kind: tree",
            "grace_period: 5",
            "10:5: .grace_period: expected no 'grace_period' (it is one of the settings in 'of')",
        ),
        (
            "kind: tree",
            "epsilon: 5",
            "10:5: .epsilon: expected no 'epsilon' (a forest without 'of' has it, which forgets)",
        ),
        (
            "kind: tree",
            "max_work: 4096",
            "10:5: .max_work: expected no 'max_work' (trees that grow are never rebuilt)",
        ),
    ],
)
def test_problems_of_forests_that_grow(tmp_path: Path, of: str, added: str, problem: str) -> None:
    """What a forest that grows cannot be told is refused, with the place and what would be right."""
    expected = problem.replace(" .", " models.spam.", 1)
    text = GROWING.replace("kind: tree", of) + (f"    {added}\n" if added else "")
    [found] = _problems(tmp_path, text)
    assert found.startswith(f"worker.yaml:{expected}, got ")


def test_what_other_kinds_have(tmp_path: Path) -> None:
    """A setting of another kind is refused with a word of where it belongs."""
    (problem,) = _problems(tmp_path, f"{DYNAMIC}    on_delete: ignore\n")
    assert "it takes deletes; a model of kind 'tree' does not" in problem
    (problem,) = _problems(tmp_path, f"{DYNAMIC}    policy: imac\n")
    assert "a model of kind 'tree' has it" in problem


def test_drift_is_watched_unless_it_is_turned_off(tmp_path: Path) -> None:
    """It is on with a delta of 0.002; null and false turn it off; what the default is no fingerprint tells."""
    told = {}
    for name, drift in {"default": "", "same": ", drift: {delta: 0.002}", "empty": ", drift: {}"}.items():
        told[name] = _load(tmp_path, TREE + f"    evaluate: {{window: 5{drift}}}\n")
    for name, drift in {"null": "null", "false": "false", "other": "{delta: 0.01}"}.items():
        told[name] = _load(tmp_path, TREE + f"    evaluate: {{window: 5, drift: {drift}}}\n")
    deltas = {}
    for name, settings in told.items():
        model = settings.models["spam"]
        assert isinstance(model, TreeSettings)
        assert model.evaluate is not None
        deltas[name] = None if model.evaluate.drift is None else model.evaluate.drift.delta
    assert adwin.DELTA == 0.002
    on = {"default": 0.002, "same": 0.002, "empty": 0.002}
    assert deltas == on | {"null": None, "false": None, "other": 0.01}
    prints = {name: fingerprint(settings) for name, settings in told.items()}
    assert prints["default"] == prints["same"] == prints["empty"] == UNWATCHED
    assert prints["null"] == prints["false"]
    assert len(set(prints.values())) == 3


@pytest.mark.parametrize("drift", ["{delta: 0}", "{delta: 1}", "{delta: much}", "true", "{delt: 0.1}"])
def test_a_wrong_drift_is_told(tmp_path: Path, drift: str) -> None:
    """Its delta is a probability, and it has no other settings."""
    [problem] = _problems(tmp_path, TREE + f"    evaluate: {{drift: {drift}}}\n")
    assert ".evaluate.drift" in problem
    assert "expected" in problem

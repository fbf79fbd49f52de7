"""Every message about offsets, partitions, retention and state that gives advice, with its test."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.support.places import ROOT

# Where these messages are, and by what a text there is one of them.
SOURCES = ("worker/restore.py", "worker/topics.py", "worker/checkpoint/reader.py", "worker/epochs.py")
MARKS = ("expected ", "bring the state topic back")

ADVICE = "tests/worker/kafka/test_advice.py"

# A part of each message, and the test: on real Kafka, but for two that need another version of the code.
MESSAGES = {
    "expected to find in the state topic which settings": (ADVICE, "test_a_state_topic_that_was_lost"),
    "or newer ones, got some that were replaced": (ADVICE, "test_settings_that_were_replaced"),
    "expected a checkpoint with the arrays of this version": (ADVICE, "test_a_checkpoint_that_cannot_be_read"),
    "without checkpoints nothing tells": (ADVICE, "test_settings_change_once_there_are_checkpoints"),
    "have still to learn, but those below": (ADVICE, "test_records_that_a_new_model_needs_are_gone"),
    "expected the format that the results": (ADVICE, "test_a_format_that_changes"),
    "with which no model loses what it has learned": (ADVICE, "test_models_that_would_lose_something"),
    "expected the committed offset to be at most": (ADVICE, "test_an_offset_beyond_the_end"),
    "on, to rebuild the models up to the committed": (ADVICE, "test_records_that_a_restore_needs_are_gone"),
    "expected the records from the committed offset": (ADVICE, "test_records_that_were_never_read_are_gone"),
    "on, where the last checkpoint is": (ADVICE, "test_offsets_have_expired"),
    "expected a committed offset, as there are results": (
        ADVICE,
        "test_offsets_have_expired_and_nothing_else_tells",
    ),
    "expected to apply again the records": (
        "tests/worker/state/test_quarantine.py",
        "test_a_failure_in_silent_replay_stops",
    ),
    "is the broker well?": (ADVICE, "test_a_replay_to_which_nothing_comes"),
    "partitions, as there were before": (ADVICE, "test_an_input_that_has_grown"),
    "partitions, as its input does; it has": (ADVICE, "test_a_topic_that_is_too_small_and_was_never_used"),
    "to have cleanup.policy={}; it has not": (ADVICE, "test_an_output_that_is_compacted"),
    "to keep the last record of each key for good": (ADVICE, "test_a_state_topic_that_expires"),
    "there is none; publish events to it first": (ADVICE, "test_an_input_that_is_not_there"),
    "event; it is compacted": (ADVICE, "test_an_input_that_is_compacted"),
    "create them first: anabranch topics create": (
        "tests/worker/kafka/test_kafka_worker.py",
        "test_missing_topics_are_named",
    ),
    "they are not there after": (ADVICE, "test_topics_that_are_not_there"),
    "expected a checkpoint of schema": (ADVICE, "test_a_checkpoint_of_a_newer_schema"),
    "a transaction is open there": (ADVICE, "test_a_transaction_that_stays_open_on_the_state_topic"),
    "is missing or not what was written": (ADVICE, "test_a_checkpoint_that_cannot_be_read"),
    "expected models that this version has": (
        "tests/worker/recordings/test_replay_changes.py",
        "test_a_version_that_lacks_a_kind_says_so",
    ),
}


def _text(node: ast.AST) -> str | None:
    """Return a text, {} for what is filled in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return None


def _messages() -> Iterator[str]:
    """Yield the texts that are messages, but what is documentation."""
    for source in SOURCES:
        tree = ast.parse((ROOT / source).read_text("utf-8"))
        parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
        parts |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            text = None if id(node) in parts else _text(node)
            if text is not None and any(mark in text for mark in MARKS):
                yield text


@pytest.mark.parametrize("message", list(_messages()))
def test_each_message_is_listed(message: str) -> None:
    """Who adds a message adds a test that follows it."""
    assert sum(part in message for part in MESSAGES) == 1, f"expected a line in MESSAGES for {message!r}"


@pytest.mark.parametrize("part", MESSAGES)
def test_each_listed_message_has_its_test(part: str) -> None:
    """What is listed is said, and followed by a test that there is."""
    assert any(part in message for message in _messages())
    path, name = MESSAGES[part]
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}

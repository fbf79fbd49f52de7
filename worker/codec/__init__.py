"""The codec: record bytes to columns of events, and results to record bytes."""

from worker.codec.bounds import Bounds
from worker.codec.columns import RecordFault, decode_batch
from worker.codec.encode import (
    DeadLetter,
    Drift,
    Evaluation,
    Expired,
    Measures,
    Output,
    Prediction,
    Source,
    Split,
    Tree,
    dead_letter,
    decode_output,
    encode,
    to_record,
)
from worker.codec.events import Events
from worker.codec.reasons import Reason
from worker.codec.tree_parts import cut, joined

__all__ = [
    "Bounds",
    "DeadLetter",
    "Drift",
    "Evaluation",
    "Events",
    "Expired",
    "Measures",
    "Output",
    "Prediction",
    "Reason",
    "RecordFault",
    "Source",
    "Split",
    "Tree",
    "cut",
    "dead_letter",
    "decode_batch",
    "decode_output",
    "encode",
    "joined",
    "to_record",
]

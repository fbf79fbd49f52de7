"""The codec: record bytes to columns of events, and results to record bytes."""

from worker.codec.bounds import Bounds
from worker.codec.columns import RecordFault, decode_batch
from worker.codec.encode import (
    AnyTree,
    DeadLetter,
    DelayedEvaluation,
    Drift,
    Evaluation,
    Expired,
    LetGo,
    Measures,
    Output,
    Prediction,
    RegressionDelayedEvaluation,
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
from worker.codec.regression import (
    RegressionEvaluation,
    RegressionMeasures,
    RegressionPrediction,
    RegressionSplit,
    RegressionTree,
)
from worker.codec.tree_parts import all_joined, cut, joined

__all__ = [
    "AnyTree",
    "Bounds",
    "DeadLetter",
    "DelayedEvaluation",
    "Drift",
    "Evaluation",
    "Events",
    "Expired",
    "LetGo",
    "Measures",
    "Output",
    "Prediction",
    "Reason",
    "RecordFault",
    "RegressionDelayedEvaluation",
    "RegressionEvaluation",
    "RegressionMeasures",
    "RegressionPrediction",
    "RegressionSplit",
    "RegressionTree",
    "Source",
    "Split",
    "Tree",
    "all_joined",
    "cut",
    "dead_letter",
    "decode_batch",
    "decode_output",
    "encode",
    "joined",
    "to_record",
]

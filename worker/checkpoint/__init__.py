"""Checkpoints: the whole state of a partition at one input offset, kept in a compacted topic.

The state is named arrays. They are cut into pages, and only pages that changed since the last checkpoint are
written, over several transactions, under keys that name their generation. Manifests then say which generation
of each page belongs together, and one small record, written last, makes the checkpoint valid. Until that
record is committed the checkpoint before it stays whole.

::

    keys.py     how records of the state topic are called
    shadow.py   a copy of the arrays as of the last checkpoint: tells which pages changed
    writer.py   when a checkpoint is due, and what is written for it
    marks.py    what the topic says besides: records that are passed by, what is about to be tried
    reader.py   the newest valid checkpoint of a partition, and the marks
"""

from worker.checkpoint.marks import Attempt, Marks, Skip
from worker.checkpoint.reader import Saved, read_checkpoint, read_marks, returned
from worker.checkpoint.writer import Checkpointer

__all__ = ["Attempt", "Checkpointer", "Marks", "Saved", "Skip", "read_checkpoint", "read_marks", "returned"]

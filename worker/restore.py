"""Start: rebuild every partition's models from what its group has committed, silently, then go live.

The models are a function of the records below the committed offset, so applying those again gives the
state that the last committed transaction left, whatever became of the process that held it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from worker.log.port import Log, LogError, Records, TopicPartition
from worker.pipeline import Pipeline

_BATCH = 5_000  # records at a time; results do not depend on it


def starting_offsets(log: Log, sources: Iterable[TopicPartition], note: str) -> dict[TopicPartition, int]:
    """Return where each partition goes live: at the committed offset, else at the first record kept.

    Parameters
    ----------
    log : Log
        Whose group's offsets are looked up.
    sources : iterable
        The partitions.
    note : str
        What the offsets must have been committed with: the fingerprint of the settings.

    Raises
    ------
    LogError
        Where records below a committed offset are gone, or never were, or other settings made the results up
        to there, so that the models cannot be rebuilt.
    """
    offsets = {}
    for source in sources:
        low, high = log.watermarks(source)
        committed = log.committed(source)
        if committed is not None and committed > high:
            raise LogError(
                f"{source.topic}/{source.partition}: expected the committed offset to be at most {high}, where "
                f"the topic ends, got {committed}: this is not the topic that was read before; commit under "
                "another group to start anew, or bring the topic back"
            )
        if committed is not None and low > 0:
            raise LogError(
                f"{source.topic}/{source.partition}: expected the records from offset 0 on, to rebuild the models "
                f"up to the committed offset {committed}, but those below {low} are gone; commit under another "
                "group to start anew from what is left, or bring the topic back"
            )
        if committed is not None and log.note(source) != note:
            raise LogError(
                f"{source.topic}/{source.partition}: expected the settings that the results up to offset "
                f"{committed} came from ({log.note(source)[:12]}), got others ({note[:12]}); go back to those "
                "or commit under another group to make all results anew with these"
            )
        offsets[source] = low if committed is None else committed
    return offsets


def replay(
    log: Log,
    pipelines: Mapping[TopicPartition, Pipeline],
    offsets: Mapping[TopicPartition, int],
    progress: Callable[[TopicPartition, int], None],
    stop: Callable[[], bool],
) -> None:
    """Apply the records below `offsets` without writing or counting anything.

    Parameters
    ----------
    log : Log
        Whose assignment is left at the end of the replay.
    pipelines : mapping
        Empty ones, of the partitions in `offsets`.
    offsets : mapping
        Where to stop, by partition.
    progress : callable
        Called with a partition and how many offsets remain, after each batch.
    stop : callable
        Says whether to give up, which leaves the pipelines half rebuilt.
    """
    for source, end in offsets.items():
        position = log.watermarks(source).low
        log.assign({source: position})
        while position < end and not stop():
            for records in log.poll(_BATCH, 0.25):
                pipelines[source].process(_below(records, end))
                position = records.next_offset
                progress(source, max(0, end - position))


def _below(records: Records, end: int) -> Records:
    """Return the records whose offsets are below `end`."""
    wanted = int((records.offsets < end).sum())
    return Records(
        source=records.source,
        offsets=records.offsets[:wanted],
        timestamps=records.timestamps[:wanted],
        keys=records.keys[:wanted],
        values=records.values[:wanted],
        headers=records.headers[:wanted],
        next_offset=end,
    )

"""The results of a batch in columns: splits of binary features, which become records at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from worker.codec.split_columns import SplitColumns
from worker.log.port import OutRecord, Records
from worker.models.port import Result


class SplitResults(Sequence[Result]):
    """Splits as results, for all who look at them one by one; and their records, without such a look.

    Parameters
    ----------
    splits : SplitColumns
        In the order of their events.
    record, row : sequence of int
        The event of each: the index of its record in its `Records`, ascending, and its row there.
    seq : int
        Of all of them.
    """

    def __init__(self, splits: SplitColumns, record: Sequence[int], row: Sequence[int], seq: int) -> None:
        self._splits, self._record, self._row, self._seq = splits, record, row, seq

    def __len__(self) -> int:
        return len(self._record)

    @overload
    def __getitem__(self, at: int) -> Result: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Result]: ...

    def __getitem__(self, at: int | slice) -> Result | Sequence[Result]:
        """Return one result, or some."""
        if isinstance(at, slice):
            return [self[each] for each in range(len(self))[at]]
        return Result(self._record[at], self._row[at], self._seq, self._splits.split(at))

    def placed(self, records: Records, topic: str) -> Iterator[tuple[tuple[int, int], OutRecord]]:
        """Yield (record, row) of the event and the record of an output topic, of each."""
        keys = [records.keys[at] for at in self._record]
        places = zip(self._record, self._row, strict=True)
        return zip(places, self._splits.records(topic, keys, self._seq), strict=True)

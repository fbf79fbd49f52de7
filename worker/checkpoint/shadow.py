"""A copy of a partition's arrays as of its last checkpoint.

It tells which pages changed since, and holds still what a checkpoint writes while the models go on. The copy
is what the loop stops for, so memory for it is taken before, a little at a time: the first touch of fresh
memory costs several times the copy itself (measured: 0.05 s for 500 MB, and up to 1.7 s more where the system
had to find the memory).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from mmap import mmap
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from algorithms.core.jit import ahead, jit
from worker.checkpoint.keys import DIGEST_BYTES, ArrayEntry, Manifest, digest

PAGE_BYTES = 64 * 1024
_CHUNK_PAGES = 64  # memory is taken in such pieces, so that a growing array never moves its copy
_CHUNK_BYTES = _CHUNK_PAGES * PAGE_BYTES

Bytes: TypeAlias = npt.NDArray[np.uint8]
Words: TypeAlias = npt.NDArray[np.uint64]
Int64s: TypeAlias = npt.NDArray[np.int64]
Models: TypeAlias = Mapping[str, Mapping[str, npt.NDArray[Any]]]  # the named arrays of each model


class Page(NamedTuple):
    """One page of one array."""

    model: str
    array: str
    number: int
    generation: int  # that wrote it


@ahead(lambda: (np.zeros(1, np.uint64), np.zeros(1, np.uint64), 1, np.zeros(1, np.bool_)))
@jit
def refresh(live: Words, copy: Words, page_words: int, changed: npt.NDArray[np.bool_]) -> None:
    """Copy the pages of `live` that differ from `copy` there, and mark them.

    Parameters
    ----------
    live : uint64[n]
        Part of an array.
    copy : uint64[n] or longer
        Its copy.
    page_words : int
        Size of a page; the last may be shorter.
    changed : bool[pages]
        Set where a page differed.
    """
    for page in range(len(changed)):
        start = page * page_words
        words = min(page_words, len(live) - start)
        difference = np.uint64(0)
        for word in range(words):  # no early exit, no negative index: so it becomes a vector loop
            difference |= live[np.uint64(start + word)] ^ copy[np.uint64(start + word)]
        if difference != 0:
            changed[page] = True
            for word in range(start, start + words):
                copy[word] = live[word]


class _Copy:
    """The copy of one array, with the generation that last wrote each page (0: all zeros, never written)."""

    def __init__(self) -> None:
        self.dtype = np.dtype(np.uint8)
        self.shape: tuple[int, ...] = (0,)
        self.size = 0  # bytes
        self.generations: Int64s = np.zeros(0, np.int64)
        self.digests = bytearray()  # 16 bytes a page, of those that were written
        self._chunks: list[Bytes] = []
        self.spare: list[Bytes] = []  # that it needs no more

    def end(self) -> list[Bytes]:
        """Return all memory that it has; it is of no use any more."""
        return [*self._chunks, *self.spare]

    @property
    def room(self) -> int:
        return sum(map(len, self._chunks))

    def grow(self, size: int) -> None:
        """Take the next chunk; the first one only as large as needed, for most arrays are small."""
        fits = max(PAGE_BYTES, 1 << (size - 1).bit_length())
        if fits < _CHUNK_BYTES:
            chunk = np.empty(fits, np.uint8)
        else:  # from the system and back to it: the C library keeps what is freed among what is in use
            chunk = np.frombuffer(mmap(-1, _CHUNK_BYTES), np.uint8)
        chunk.fill(0)  # touches it, which `zeros` would leave for later
        if self._chunks and len(self._chunks[-1]) < _CHUNK_BYTES:
            small = self._chunks.pop()
            chunk[: len(small)] = small
        self._chunks.append(chunk)

    def take(self, array: npt.NDArray[Any]) -> tuple[Int64s, Int64s]:
        """Become a copy of the array; return which pages changed, and the generations of those cut off."""
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        while self.room < flat.size:
            self.grow(flat.size)
        is_cut = flat.size < self.size
        if is_cut:
            self._clear(flat.size)
        self.dtype, self.shape, self.size = array.dtype, array.shape, flat.size
        pages = -(-flat.size // PAGE_BYTES)
        cut_off = self.generations[pages:]
        generations = np.zeros(pages, np.int64)
        generations[: len(self.generations)] = self.generations[:pages]
        self.generations = generations
        del self.digests[pages * DIGEST_BYTES :]
        self.digests.extend(bytes(pages * DIGEST_BYTES - len(self.digests)))
        changed = np.zeros(pages, np.bool_)
        changed[-1:] = is_cut  # the last page as it was written is too long
        for number, chunk in enumerate(self._chunks[: -(-flat.size // _CHUNK_BYTES)]):
            part = flat[number * _CHUNK_BYTES : (number + 1) * _CHUNK_BYTES]
            words = part.size // 8 * 8
            flags = changed[number * _CHUNK_PAGES : (number + 1) * _CHUNK_PAGES]
            refresh(part[:words].view(np.uint64), chunk.view(np.uint64), PAGE_BYTES // 8, flags)
            if (part[words:] != chunk[words : part.size]).any():
                flags[-1] = True
                chunk[words : part.size] = part[words:]
        return np.flatnonzero(changed), cut_off

    def _clear(self, start: int) -> None:
        """Forget what lies behind the end of an array that became shorter: pages of generation 0 are zeros."""
        needed = max(1, -(-start // _CHUNK_BYTES))
        self.spare += self._chunks[needed:]
        del self._chunks[needed:]
        self._chunks[-1][max(0, start - (len(self._chunks) - 1) * _CHUNK_BYTES) :] = 0

    def read(self, number: int) -> bytes:
        """Return a page that is to be written, and note its digest."""
        chunk, within = divmod(number, _CHUNK_PAGES)
        start = within * PAGE_BYTES
        stop = start + min(PAGE_BYTES, self.size - number * PAGE_BYTES)
        data = self._chunks[chunk][start:stop].tobytes()
        self.digests[number * DIGEST_BYTES : (number + 1) * DIGEST_BYTES] = digest(data)
        return data


class Shadow:
    """The copies of all arrays of all models of a partition."""

    def __init__(self) -> None:
        self._copies: dict[str, dict[str, _Copy]] = {}
        self._spare: list[Bytes] = []  # given back a little at a time: a gigabyte at once would take 0.1 s

    @property
    def size(self) -> int:
        """How large the copied state is, in bytes."""
        return sum(copy.size for copies in self._copies.values() for copy in copies.values())

    def reserve(self, models: Models) -> Iterator[None]:
        """Take memory for what has grown, and give back what is spare, a few megabytes at each step."""
        while self._spare:
            self._spare.pop()
            yield
        for model, name, array in _each(models):
            copy = self._copy(model, name)
            while copy.room < array.nbytes:
                copy.grow(array.nbytes)
                yield

    def _copy(self, model: str, name: str) -> _Copy:
        return self._copies.setdefault(model, {}).setdefault(name, _Copy())

    def take(self, models: Models, generation: int) -> tuple[list[Page], list[Page]]:
        """Become a copy of the models' arrays; return the pages to be written and those out of date.

        What no model has any more is forgotten.

        Parameters
        ----------
        models : mapping
            The named arrays of each model.
        generation : int
            Of the checkpoint; pages that changed belong to it from now on.
        """
        written: list[Page] = []
        stale = list(self._without_others(models))
        for model, name, array in _each(models):
            copy = self._copy(model, name)
            changed, cut_off = copy.take(array)
            self._spare += copy.spare
            copy.spare.clear()
            before = [
                *zip(changed.tolist(), copy.generations[changed].tolist(), strict=True),
                *enumerate(cut_off.tolist(), start=len(copy.generations)),
            ]
            stale += [Page(model, name, number, of) for number, of in before if of]
            written += [Page(model, name, number, generation) for number in changed.tolist()]
            copy.generations[changed] = generation
        return written, stale

    def _without_others(self, models: Models) -> Iterator[Page]:
        """Drop the copies of arrays that are gone, and yield their pages."""
        for model, copies in list(self._copies.items()):
            for name in [name for name in copies if name not in models.get(model, ())]:
                gone = copies.pop(name)
                self._spare += gone.end()
                generations = gone.generations.tolist()
                yield from (Page(model, name, number, of) for number, of in enumerate(generations) if of)
            if not copies:
                del self._copies[model]

    def adopt(self, models: Models, manifests: Mapping[str, Manifest]) -> None:
        """Become a copy of a state that was read from a checkpoint, as its manifests say."""
        self.take(models, 0)
        for model, manifest in manifests.items():
            for entry in manifest.arrays:
                copy = self._copy(model, entry.name)
                copy.generations = np.frombuffer(entry.generations, "<i8").astype(np.int64)
                copy.digests = bytearray(entry.digests)

    def read(self, page: Page) -> bytes:
        """Return what a page that is to be written holds."""
        if self._spare:
            self._spare.pop()
        return self._copies[page.model][page.array].read(page.number)

    def manifests(self) -> dict[str, Manifest]:
        """Return which generation of each page the copy is made of, once all new ones have been read."""
        return {
            model: Manifest(
                [
                    ArrayEntry(
                        name,
                        copy.dtype.str,
                        list(copy.shape),
                        copy.generations.astype("<i8").tobytes(),
                        bytes(copy.digests),
                    )
                    for name, copy in copies.items()
                ]
            )
            for model, copies in self._copies.items()
        }


def _each(models: Models) -> Iterator[tuple[str, str, npt.NDArray[Any]]]:
    for model, arrays in models.items():
        for name, array in arrays.items():
            yield model, name, array

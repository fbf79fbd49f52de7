"""What all models that forget do alike: examples go by an id, or by value."""

from __future__ import annotations

from typing import Any

from algorithms.core.events import Op, Status
from algorithms.core.given import id_of
from algorithms.core.pool import Id
from algorithms.estimators.base import Estimator, One
from algorithms.estimators.encoding import Entries


class Forgetting(Estimator):
    """A model that takes examples back: by value, or by an id."""

    @property
    def _any_label(self) -> float:
        """A label that the pool takes where an event needs none."""
        return 0

    def learn_one(self, x: Any, y: Any, w: float = 1.0, *, id: Id | None = None) -> None:
        """Learn an example.

        Parameters
        ----------
        x : dict, list, tuple, set, row of a CSR matrix or of pandas
            From features to values, or the features that are present.
        y : hashable, or float
            The label: any of classes, a number of regressors.
        w : float
            The weight; 0 says that there is nothing to learn.
        id : int, str or bytes, optional
            Names the example, so that `unlearn_one` needs no more than that.

        Raises
        ------
        ValueError
            Where one of these is wrong; nothing has changed.
        """
        if id is None:
            super().learn_one(x, y, w)
            return
        entries, numeric = self._entries(x)
        units = self._units(w)
        id_of(id)
        if not units:
            return
        before = dict(self._labels)
        number = self._number(y)
        self._numeric = numeric
        answers = self._apply(One(Op.INSERT, entries, number, units, id))
        if answers.status[-1] > Status.SKIPPED:
            self._labels = before
            self._raise_refused(answers.status)

    def unlearn_one(self, x: Any = None, y: Any = None, w: float = 1.0, *, id: Id | None = None) -> None:
        """Forget an example: its id, or else its features, label and weight, as they were learned.

        What was learned with an id is forgotten by this id.
        An example that a window has dropped is forgotten already.

        Raises
        ------
        LookupError
            Where there is no such example.
        ValueError
            Where what is given is wrong.
        """
        if (id is None) == (x is None):
            raise ValueError("expected an example, as unlearn_one(x, y), or its id, as unlearn_one(id=...)")
        if id is None and y is None:
            raise ValueError(
                "expected the label that the example was learned with, as unlearn_one(x, y), got None"
            )
        entries = Entries([], [])
        number: float | None = self._any_label
        if id is None:
            entries, _ = self._entries(x)
            number = self._known(y)
        units = self._units(w)
        if not units:
            return
        status = Status.ABSENT_EXAMPLE
        if self._knows and number is not None:
            status = Status(int(self._apply(One(Op.DELETE, entries, number, units, id)).status[-1]))
        if status in (Status.ABSENT_EXAMPLE, Status.ABSENT_ID):
            said = f"with the id {id!r}"
            if id is None:
                said = f"{x!r} of the label {y!r} and the weight {w!r}; if it had an id, say unlearn_one(id=...)"
            raise LookupError(f"expected an example that was learned and not unlearned since, got one {said}")

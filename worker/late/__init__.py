"""Labels that come later than the features: what a predict held is kept until its label comes.

::

    {"op": "predict", "id": 7, "x": ...}  --->  the store of the partition (pending.py), one for all models
                                                    |
    {"op": "label", "id": 7, "y": "spam"}  -------->+--->  an insert of the example, for models that take part
                                                    +--->  how good the answer was that was given then (said.py)

kernel.py has what becomes of the examples at each event; late.py is what the pipeline of a partition has of it.
"""

from worker.late.late import Batch, LateLabels
from worker.late.pending import Tally

__all__ = ["Batch", "LateLabels", "Tally"]

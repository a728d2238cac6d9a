"""The seen-unseen curve: both accuracies as a function of an offset added to the scores of unseen classes.

After W.-L. Chao et al., An Empirical Study and Analysis of Generalized Zero-Shot Learning (ECCV 2016).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stream_cgzsl.evaluation.answers import Answers


@dataclass(frozen=True, eq=False)
class Curve:
    """Per-class mean accuracies while the offset rises from -inf to +inf.

    Point i holds for offsets above `offsets[i - 1]`, up to and including `offsets[i]`.
    """

    offsets: npt.NDArray[np.float64]  # [points - 1], ascending: where an accuracy changes
    seen: npt.NDArray[np.float64]  # [points], falling to 0
    unseen: npt.NDArray[np.float64]  # [points], rising from 0

    @property
    def area(self) -> float:
        """The area under the polyline through all points, 0 to 1."""
        area = ((self.seen[:-1] - self.seen[1:]) * (self.unseen[:-1] + self.unseen[1:])).sum() / 2
        return float(min(area, 1.0))

    def at(self, offset: float) -> tuple[float, float]:
        """Seen and unseen accuracy with this offset; 0 is the generation as it is."""
        point = int(np.searchsorted(self.offsets, offset, side="left"))
        return float(self.seen[point]), float(self.unseen[point])


def seen_unseen_curve(answers: Answers, seen: npt.NDArray[np.bool_]) -> Curve | None:
    """The curve of a generation with these seen classes; None unless there are rows of both kinds."""
    rows = np.bincount(answers.truth, minlength=len(seen))
    classes = np.array([((rows > 0) & ~seen).sum(), ((rows > 0) & seen).sum()])  # unseen, seen
    if not classes.all():
        return None
    weights = 1 / (rows * classes[seen.astype(int)])[answers.truth]
    ever = answers.right_in_group  # the others are wrong with any offset
    offsets, place = np.unique(answers.lead[ever], return_inverse=True)
    of_seen = seen[answers.truth[ever]]
    lost = np.bincount(place, weights[ever] * of_seen, minlength=len(offsets))
    won = np.bincount(place, weights[ever] * ~of_seen, minlength=len(offsets))
    return Curve(
        offsets,
        np.minimum(np.append(np.cumsum(lost[::-1])[::-1], 0.0), 1.0),
        np.minimum(np.append(0.0, np.cumsum(won)), 1.0),
    )

"""What learners in the standardised space share: one whitening for as long as the moments stay the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

from stream_cgzsl.learners.base import StatisticsLearner, require_learned
from stream_cgzsl.learners.draws import drawn
from stream_cgzsl.learners.randomness import generator
from stream_cgzsl.learners.standard import Standard, standardise
from stream_cgzsl.learners.statistics import Statistics
from stream_cgzsl.learners.whitening import whiten


class StandardisingLearner(StatisticsLearner):
    """Training, publishing and describing more classes after that need one factorisation between them."""

    symmetric = False
    whitened = True

    _statistics_standardised: Statistics | None = None
    _last: Standard | None = None

    def _standard(self, statistics: Statistics, shared: bool) -> Standard:
        """Steps 3 to 5. At least one class must be seen."""
        last = self._last
        if last is not None and self._statistics_standardised is statistics and (last.prior is not None) == shared:
            return last
        scatter = statistics.moments.scatter  # all that a whitening rests on; class means may differ
        whitening = last.whitening if last is not None and last.whitening.moments.scatter is scatter else None
        self._last = last = None  # the old one is let go before the new one is made
        whitening = whitening or whiten(statistics.moments, self.device, self.symmetric, self.whitened)
        self._last, self._statistics_standardised = standardise(statistics, shared, whitening), statistics
        return self._last

    def generate(self, class_ids: Sequence[str], rows: int) -> npt.NDArray[np.float32] | None:
        statistics = self._statistics
        require_learned(statistics, class_ids)
        means = np.stack([statistics.moments.means[class_id] for class_id in class_ids])
        random = generator(self.space.seed, 0, "generate")
        return drawn(statistics.moments, torch.from_numpy(means).to(self.device), rows, random).cpu().numpy()

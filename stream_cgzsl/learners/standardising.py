"""What learners in the standardised space share: one whitening for as long as the moments stay the same."""

from __future__ import annotations

from stream_cgzsl.learners.base import StatisticsLearner
from stream_cgzsl.learners.standard import Standard, standardise
from stream_cgzsl.learners.statistics import Statistics
from stream_cgzsl.learners.whitening import Whitening, whiten


class StandardisingLearner(StatisticsLearner):
    """Training, publishing and describing more classes after that need one factorisation between them."""

    symmetric = False
    whitened = True

    _whitening: Whitening | None = None

    def _standard(self, statistics: Statistics, shared: bool) -> Standard:
        """Steps 3 to 5. At least one class must be seen."""
        if self._whitening is None or self._whitening.moments is not statistics.moments:
            self._whitening = None  # the old one is let go before the new one is made
            self._whitening = whiten(statistics.moments, self.device, self.symmetric, self.whitened)
        return standardise(statistics, shared, self._whitening)

"""How long each window was trained for: a learner's metrics, which it fills anyway, asked once a window."""

from __future__ import annotations

from stream_cgzsl.metrics import LearnerMetrics
from stream_cgzsl.schemas import LedgerRecord


class TrainingTimes(LearnerMetrics):
    """Writes seconds by window number into `training`."""

    def __init__(self, training: dict[int, float]) -> None:
        super().__init__()
        self._training = training
        self._total = 0.0

    def committed(self, record: LedgerRecord) -> None:
        super().committed(record)
        total = self.registry.get_sample_value("cgzsl_window_phase_seconds_sum", {"phase": "train"}) or 0.0
        self._training[record.number] = total - self._total
        self._total = total

"""Drift detection, by a detector of River."""

from __future__ import annotations

from river import base

from stream_pegasos.common.errors import must_be
from stream_pegasos.common.packing import is_drift_detector

__all__ = ["DriftWatch", "check_drift_detector"]


class DriftWatch:
    """A copy of a drift detector, and the number of drifts that it detected."""

    def __init__(self, detector: base.DriftDetector | base.BinaryDriftDetector | None) -> None:
        check_drift_detector(detector)
        self.detector: base.DriftDetector | base.BinaryDriftDetector | None = (
            None if detector is None else detector.clone()
        )
        self.n_drifts = 0

    def tell(self, wrong: bool) -> bool:
        """Tell the detector whether a prediction was wrong. Return whether it detects a drift."""
        assert self.detector is not None
        if isinstance(self.detector, base.BinaryDriftDetector):
            self.detector.update(bool(wrong))
        else:
            self.detector.update(float(wrong))
        self.n_drifts += bool(self.detector.drift_detected)
        return bool(self.detector.drift_detected)


def check_drift_detector(detector: object) -> None:
    if detector is not None and not is_drift_detector(detector):
        raise TypeError(must_be("drift_detector", "a detector of river.drift, as drift.ADWIN(), or None", detector))

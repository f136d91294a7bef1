"""Watching for drift, by a detector of River's."""

from __future__ import annotations

from typing import Any

from river import base

from stream_pegasos.common.checks import must_be
from stream_pegasos.common.packing import is_drift_detector

__all__ = ["DriftWatch"]


class DriftWatch:
    """A copy of a drift detector, and how many drifts it has detected."""

    def __init__(self, detector: base.DriftDetector | base.BinaryDriftDetector | None) -> None:
        if detector is not None and not is_drift_detector(detector):
            raise TypeError(must_be("drift_detector", "one of river.drift, or None", detector))
        self.detector: Any = None if detector is None else detector.clone()
        self.n_drifts = 0

    def tell(self, wrong: bool) -> bool:
        """Tell the detector whether a prediction was wrong, and return whether it detects a drift."""
        self.detector.update(bool(wrong) if isinstance(self.detector, base.BinaryDriftDetector) else float(wrong))
        self.n_drifts += bool(self.detector.drift_detected)
        return bool(self.detector.drift_detected)

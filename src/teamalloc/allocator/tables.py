"""Predictions for a whole grid, kept so that an answer does not compute them again."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping

import numpy as np

from teamalloc.allocator.space import SearchSpace
from teamalloc.models.curve import Prediction
from teamalloc.models.families import Target
from teamalloc.models.forecast import Forecaster

_PARTS = ("mean", "epistemic_sd", "run_sd", "extrapolated")
_TARGETS: tuple[Target, ...] = ("reward", "cost", "latency")


def table_key(forecaster: Forecaster, space: SearchSpace) -> str:
    """Key of the table of a grid at the prices of a day."""
    text = f"grid 1\0{forecaster.digest}\0{forecaster.price_date}\0{space}"
    return hashlib.sha256(text.encode()).hexdigest()


def predict_grid(forecaster: Forecaster, space: SearchSpace) -> Mapping[Target, Prediction]:
    """Predictions for every cell, in single precision as they are stored."""
    forecast = forecaster.predict(space.columns(forecaster.models.who, np.arange(len(space))))
    return decode_table(encode_table(forecast))


def encode_table(forecast: Mapping[Target, Prediction]) -> bytes:
    """One array of single-precision numbers in numpy's own format (no pickle)."""
    rows = [getattr(forecast[target], part) for target in _TARGETS for part in _PARTS]
    buffer = io.BytesIO()
    np.save(buffer, np.array(rows, dtype=np.float32), allow_pickle=False)
    return buffer.getvalue()


def decode_table(body: bytes) -> Mapping[Target, Prediction]:
    """The inverse of ``encode_table``."""
    rows = np.load(io.BytesIO(body), allow_pickle=False).astype(np.float64)
    parts = {t: rows[len(_PARTS) * i : len(_PARTS) * (i + 1)] for i, t in enumerate(_TARGETS)}
    return {target: Prediction(target, *parts[target]) for target in _TARGETS}

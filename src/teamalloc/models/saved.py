"""A forecaster as JSON: numbers, names and nothing that runs."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from teamalloc.errors import StoreError
from teamalloc.models.forecast import Forecaster

VERSION = 1


class _Saved(msgspec.Struct):
    version: int
    forecaster: Forecaster


def encode_forecaster(forecaster: Forecaster) -> bytes:
    """JSON of a forecaster; the same forecaster gives the same bytes."""
    return msgspec.json.encode(_Saved(VERSION, forecaster), enc_hook=_encode_array)


def decode_forecaster(body: bytes) -> Forecaster:
    """The inverse of ``encode_forecaster``.

    Raises:
        StoreError: the bytes are damaged or of another version.
    """
    try:
        saved = msgspec.json.decode(body, type=_Saved, dec_hook=_decode_array)
    except msgspec.MsgspecError as error:
        raise StoreError(
            f"the stored curves cannot be read: {error}.", remedy="Fit again: allocate fit."
        ) from error
    if saved.version != VERSION:
        raise StoreError(
            "the stored curves are of another version.", remedy="Fit again: allocate fit."
        )
    return saved.forecaster


def _encode_array(value: Any) -> Any:
    """Arrays as lists; nan (unknown) as null."""
    if isinstance(value, np.ndarray):
        rows = value.tolist()
        return [None if x != x else x for x in rows] if value.ndim == 1 else rows
    raise NotImplementedError(type(value))


def _decode_array(_kind: Any, value: Any) -> Any:
    if isinstance(value, list) and value and isinstance(value[0], bool):
        return np.array(value, dtype=bool)
    return np.array(value, dtype=np.float64)

"""Writing files so that a full disk or Ctrl-C leaves all of a file or nothing of it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from teamalloc.errors import BadInput


def write_file(path: Path, chunks: Iterable[str]) -> None:
    """Write text to a path; an older file stays until the new one is complete.

    Raises:
        BadInput: the path cannot be written.
    """
    try:
        if path.exists() and not path.is_file():  # a device or a pipe has no name to replace
            with path.open("w", encoding="utf-8") as device:
                device.writelines(chunks)
            return
        _replace(path, chunks)
    except OSError as error:
        reason = error.strerror or str(error)
        raise BadInput(
            f"{path} cannot be written: {reason}.", remedy="Give another path."
        ) from error


def _replace(path: Path, chunks: Iterable[str]) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.writelines(chunks)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:  # Ctrl-C included: no half-written file stays
        temporary.unlink(missing_ok=True)
        raise

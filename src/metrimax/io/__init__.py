"""Files: data in svmlight text, CSV, Parquet and NumPy archives; models."""

from metrimax.io.files import FileError

__all__ = ["FileError"]

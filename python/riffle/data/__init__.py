"""The data of the built-in tasks: downloaded once and checked, or generated from a seed."""

from riffle.data.cache import NotAvailable, fetch, folder, is_cached, verify
from riffle.data.sets import SETS, DataSet

__all__ = ["SETS", "DataSet", "NotAvailable", "fetch", "folder", "is_cached", "verify"]

"""Aero in the contract suite: both reference servers as children of the worker."""

from contextlib import nullcontext

from tests.contract.case import Case
from tests.models.aero.conftest import pair_settings

CASE = Case("aero", "aero", lambda folder: nullcontext(pair_settings()), media_s=1.6)

"""Gander in the contract suite, on its double."""

from tests.contract.case import Case

CASE = Case("gander", "tests.fakes.gander")

"""MiniCPM-o in the contract suite, on its double."""

from tests.contract.case import Case

CASE = Case("minicpmo", "tests.fakes.minicpmo")

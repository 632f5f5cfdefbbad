"""The embedded model in the contract suite; bursts of noise are no words, so it keeps silent."""

from tests.contract.case import Case

CASE = Case("cascade", "cascade", speaks=False)

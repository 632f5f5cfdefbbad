"""Models of no intelligence for the tests: real members of the interface, no packages needed.

They are found through PYTHONPATH; config/models.yaml of a test names them by dotted path
(``module: testmodels.beeper``).
"""

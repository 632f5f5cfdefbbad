"""Running a model again, for the rules that no folder of results can answer."""

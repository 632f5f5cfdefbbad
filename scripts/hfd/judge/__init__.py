"""Metrics, audit rules and the report: reads result folders, never a model."""

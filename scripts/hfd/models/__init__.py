"""The models: one interface (base.py), one module or package per model."""

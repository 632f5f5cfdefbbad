"""What every model promises (`hfd.duplex.model.DuplexModel`), tested in one way.

A model takes part by a file ``contract.py`` beside its own tests that defines ``CASE`` (see
`tests.contract.case.Case`). A model outside of this repository is checked with

    python -m pytest tests/contract --model my_package.my_model [--model-path FOLDER]
        [--model-settings '{"threshold": 0.5}']
"""

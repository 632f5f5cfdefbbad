"""Snakemake's Kubernetes executor for pods that share a volume with the run.

The executor itself (snakemake-executor-plugin-kubernetes) declares that nothing is shared, so that
Snakemake would copy every declared file through object storage and lose the store of finished
samples. This module is that executor with the one declaration changed. Python must find it:
PYTHONPATH=profiles/kubernetes (docs/cluster.md).
"""

from dataclasses import replace

from snakemake_executor_plugin_kubernetes import Executor as Executor
from snakemake_executor_plugin_kubernetes import ExecutorSettings as ExecutorSettings
from snakemake_executor_plugin_kubernetes import common_settings as _nothing_shared

common_settings = replace(
    _nothing_shared,
    implies_no_shared_fs=False,
    job_deploy_sources=False,
    pass_default_storage_provider_args=False,
    auto_deploy_default_storage_provider=False,
)

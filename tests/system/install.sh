#!/usr/bin/env bash
# Debian packages of the system tests; needs root.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
apt-get update --quiet
apt-get install --yes --quiet --no-install-recommends \
    slurm-wlm slurmdbd mariadb-server munge \
    chromium chromium-driver fonts-wqy-microhei

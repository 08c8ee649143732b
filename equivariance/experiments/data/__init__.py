# SPDX-License-Identifier: Apache-2.0
"""Data of the experiments: computed by default, else from files or the hub."""

# SPDX-License-Identifier: Apache-2.0
"""What a data owner runs: data shards, private keys, defences, and the ClientApp around them."""

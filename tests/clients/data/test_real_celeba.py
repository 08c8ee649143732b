# SPDX-License-Identifier: Apache-2.0
"""Real CelebA images, where PERMSPLIT_CELEBA names a folder of them."""

from pathlib import Path

import numpy as np

from clients.data import DataSpec, check_source, load_auxiliary, load_shard


def test_real_images(real_celeba: Path, tmp_path: Path) -> None:
    spec = DataSpec(
        data=f"celeba:{real_celeba}", image_size=32, partition="identity", cache_dir=str(tmp_path)
    )
    summary = check_source(spec, num_partitions=4)
    assert min(summary.shards["train"]) > 0
    assert 0.7 < np.mean(list(summary.majority_floor.values())) < 0.9
    shards = [
        load_shard(spec, partition_id=client, num_partitions=4, split="test") for client in range(4)
    ]
    people = [set(shard.identities.tolist()) for shard in shards]
    assert sum(map(len, people)) == len(set.union(*people)) == summary.identities["test"]
    assert not set(load_auxiliary(spec).identities) & set.union(*people)
    pixels = np.concatenate([shard.images for shard in shards])
    assert 80 < pixels.mean() < 160
    assert pixels.std() > 40

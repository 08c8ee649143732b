# SPDX-License-Identifier: Apache-2.0
"""F-SIM by pluggable networks."""

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from attacks import AttackError
from attacks.metrics import FaceInput, OnnxEmbedder, TimmEmbedder, f_sim, score_reconstructions
from attacks.metrics.faces import cut_faces

SFACE = Path(__file__).resolve().parents[4] / "shared" / "weights" / "sface.onnx"


class Colours:
    """An embedding that is known: the mean of each channel."""

    name = "colours"

    def embed(self, images: torch.Tensor) -> NDArray[np.float64]:
        means: NDArray[np.float64] = images.double().mean(dim=(2, 3)).numpy()
        return means


def test_f_sim_is_the_cosine_of_embeddings() -> None:
    red, yellow = torch.zeros(2, 1, 3, 8, 8)
    red[:, 0] = 1.0
    yellow[:, :2] = 1.0
    assert f_sim(red, yellow, Colours())[0] == pytest.approx(np.sqrt(0.5))
    (result,) = score_reconstructions(red, yellow, metrics=["f_sim"], seed=0, embedder=Colours())
    assert result.embedder == "colours"


def test_a_timm_network_says_that_it_knows_nothing() -> None:
    embedder = TimmEmbedder("resnet10t", pretrained=False, seed=1)
    assert embedder.name == "timm:resnet10t (random weights)"
    images = torch.rand(3, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    np.testing.assert_allclose(f_sim(images, images, embedder), 1.0, rtol=1e-6)
    np.testing.assert_allclose(
        embedder.embed(images)[1:2], embedder.embed(images[1:2]), rtol=1e-4, atol=1e-6
    )


def test_weights_that_cannot_be_had_leave_random_ones_and_the_name_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import timm

    create = timm.create_model

    def offline(model: str, *, pretrained: bool, num_classes: int) -> torch.nn.Module:
        if pretrained:
            raise OSError("no route to the hub")
        made: torch.nn.Module = create(model, num_classes=num_classes)
        return made

    monkeypatch.setattr(timm, "create_model", offline)
    before = torch.get_rng_state()
    assert TimmEmbedder("resnet10t", seed=1).name == "timm:resnet10t (random weights)"
    assert torch.equal(torch.get_rng_state(), before)
    with pytest.raises(AttackError, match="no weights from the hub: no route"):
        TimmEmbedder("resnet10t", pretrained=True)
    with pytest.raises(AttackError, match="attack-face = timm:resnet0: timm has no such model"):
        TimmEmbedder("resnet0")


def test_colours_are_mapped_as_the_network_wants_them() -> None:
    face = torch.tensor([0.0, 0.5, 1.0]).view(1, 3, 1, 1)
    assert FaceInput().of(face).ravel().tolist() == [0.0, 127.5, 255.0]
    assert FaceInput(black=-1, white=1, bgr=True).of(face).ravel().tolist() == [1.0, 0.0, -1.0]


def test_the_face_is_where_celeba_has_it() -> None:
    """A mark on the face box (33, 61, 145, 173) of 178 x 218 fills what the network sees."""
    picture = torch.zeros(1, 3, 218, 178)
    picture[:, :, 61:173, 33:145] = 1.0
    square = picture[:, :, 20:198]
    assert torch.equal(cut_faces(square, 112), torch.ones(1, 3, 112, 112))


def test_what_is_no_network_is_one_clear_error(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    with pytest.raises(AttackError, match="no such file"):
        OnnxEmbedder(tmp_path / "none.onnx")
    (tmp_path / "text.onnx").write_text("hello")
    with pytest.raises(AttackError, match="no ONNX network"):
        OnnxEmbedder(tmp_path / "text.onnx")


@pytest.mark.parametrize(
    ("shape", "allowed"),
    [((1, 3, 8, 8), True), (("n", 3, 8, 8), True), ((4, 3, 8, 8), False), ((1, 1, 8, 8), False),
     ((1, 3, 8, 9), False), ((1, 3, "h", "w"), False), ((1, 192), False)],
)  # fmt: skip
def test_only_square_colour_inputs_are_taken(
    tmp_path: Path, shape: tuple[int | str, ...], allowed: bool
) -> None:
    pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("onnx")
    kind = onnx.TensorProto.FLOAT
    node = onnx.helper.make_node("Flatten", ["data"], ["out"], axis=1)
    graph = onnx.helper.make_graph(
        [node], "flat", [onnx.helper.make_tensor_value_info("data", kind, list(shape))],
        [onnx.helper.make_tensor_value_info("out", kind, ["m", "e"])],
    )  # fmt: skip
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    model.ir_version = 9
    onnx.save(model, tmp_path / "flat.onnx")
    if allowed:
        embedder = OnnxEmbedder(tmp_path / "flat.onnx")
        values = embedder.embed(torch.ones(2, 3, 16, 16))
        np.testing.assert_allclose(values, np.full((2, 192), 255.0), rtol=1e-5)
    else:
        with pytest.raises(AttackError, match=r"allowed is \[1 or any, 3, side, side\]"):
            OnnxEmbedder(tmp_path / "flat.onnx")


@pytest.mark.skipif(not SFACE.is_file(), reason="needs the shared face network")
def test_a_real_face_network_knows_a_face_again() -> None:
    pytest.importorskip("onnxruntime")
    embedder = OnnxEmbedder(SFACE)
    images = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    assert embedder.name == "sface"
    together = embedder.embed(images)
    assert together.shape == (2, 128)
    np.testing.assert_allclose(together[1:], embedder.embed(images[1:]), rtol=1e-5, atol=1e-6)
    assert f_sim(images[:1], images[1:], embedder)[0] < 0.999
    np.testing.assert_allclose(f_sim(images, images, embedder), 1.0, rtol=1e-6)

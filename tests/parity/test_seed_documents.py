"""Two articles' Transformers, rebuilt here under their parameters' names, against ours with the same weights.

The first is post-norm with scaled embeddings and biases everywhere. The second is pre-norm with GELU and unscaled
embeddings; it normalises the memory by each decoder layer's own second norm and has no norm after its encoder, which
equals our final encoder norm at one and zero as long as those second norms are still at one and zero; once trained,
they fold into the projections of the memory. ``python -m benchmarks.questions.seed_parity`` runs the articles' own
code.
"""

import math
import re

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dragoman.config import ModelConfig
from dragoman.model.transformer import Transformer

D_MODEL, HEADS, D_FF, LAYERS, V_SRC, V_TGT = 22, 2, 31, 3, 29, 37
SRC = torch.tensor([[5, 12, 7, 28, 3], [9, 3, 0, 0, 0], [11, 4, 3, 0, 0]])
TGT_IN = torch.tensor([[2, 4, 8, 4, 11, 36, 1], [2, 12, 5, 0, 0, 0, 0], [2, 33, 17, 13, 19, 0, 0]])
REAL = TGT_IN != 0


class Positions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        rates = torch.exp(torch.arange(0, D_MODEL, 2).double() * (-math.log(10000.0) / D_MODEL))
        angles = torch.arange(41).double()[:, None] * rates
        self.register_buffer("pe", torch.stack((angles.sin(), angles.cos()), -1).flatten(1)[None])


class Attention(nn.Module):
    def __init__(self, output: str) -> None:
        super().__init__()
        self.output = output  # the articles differ in the name of the last projection
        for name in ("w_q", "w_k", "w_v", output):
            self.add_module(name, nn.Linear(D_MODEL, D_MODEL))

    def forward(self, x: Tensor, y: Tensor, hidden: Tensor) -> Tensor:
        q, k, v = (
            self.get_submodule(name)(z).view(z.size(0), -1, HEADS, D_MODEL // HEADS).transpose(1, 2)
            for name, z in (("w_q", x), ("w_k", y), ("w_v", y))
        )
        scores = (q @ k.transpose(2, 3) / math.sqrt(D_MODEL // HEADS)).masked_fill(hidden, -1e9)
        return self.get_submodule(self.output)((scores.softmax(-1) @ v).transpose(1, 2).reshape(x.shape))


def stack(layer: type[nn.Module], embedding: str, positions: str, vocab_size: int, **more: nn.Module) -> nn.Module:
    parts = {embedding: nn.Embedding(vocab_size, D_MODEL), positions: Positions(), **more}
    module = nn.Module()
    for name, part in {**parts, "layers": nn.ModuleList(layer() for _ in range(LAYERS))}.items():
        module.add_module(name, part)
    return module


class PostNormFeedForward(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w_1, self.w_2 = nn.Linear(D_MODEL, D_FF), nn.Linear(D_FF, D_MODEL)


class PostNormLayer(nn.Module):
    def __init__(self, with_memory: bool = False) -> None:
        super().__init__()
        self.self_attn, self.feed_forward = Attention("fc_out"), PostNormFeedForward()
        self.norm1, self.norm2 = nn.LayerNorm(D_MODEL), nn.LayerNorm(D_MODEL)
        if with_memory:
            self.cross_attn, self.norm3 = Attention("fc_out"), nn.LayerNorm(D_MODEL)

    def forward(
        self, x: Tensor, hidden: Tensor, memory: Tensor | None = None, src_hidden: Tensor | None = None
    ) -> Tensor:
        x = self.norm1(x + self.self_attn(x, x, hidden))
        if memory is not None:
            x = self.norm2(x + self.cross_attn(x, memory, src_hidden))
        ffn = self.feed_forward
        return (self.norm2 if memory is None else self.norm3)(x + ffn.w_2(F.relu(ffn.w_1(x))))


class PostNormDecoderLayer(PostNormLayer):
    def __init__(self) -> None:
        super().__init__(with_memory=True)


class PostNormArticle(nn.Module):
    """Padding is hidden as a key; a query that is padding sees the others."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = stack(PostNormLayer, "embedding", "pos_encoder", V_SRC)
        self.decoder = stack(
            PostNormDecoderLayer, "embedding", "pos_encoder", V_TGT, fc_out=nn.Linear(D_MODEL, V_TGT)
        )  # fmt: skip

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        src_hidden, tgt_hidden = ((ids == 0)[:, None, None, :] for ids in (src, tgt))
        tgt_hidden = tgt_hidden | torch.ones(tgt.size(1), tgt.size(1), dtype=torch.bool).triu(1)
        memory, x = (
            part.embedding(ids) * math.sqrt(D_MODEL) + part.pos_encoder.pe[:, : ids.size(1)]
            for part, ids in ((self.encoder, src), (self.decoder, tgt))
        )
        for layer in self.encoder.layers:
            memory = layer(memory, src_hidden)
        for layer in self.decoder.layers:
            x = layer(x, tgt_hidden, memory, src_hidden)
        return self.decoder.fc_out(x)


class PreNormFeedForward(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(D_MODEL, D_FF), nn.GELU(), nn.Identity(), nn.Linear(D_FF, D_MODEL))


class PreNormEncoderLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(D_MODEL), nn.LayerNorm(D_MODEL)
        self.mha, self.ffn = Attention("out_proj"), PreNormFeedForward()

    def forward(self, x: Tensor, hidden: Tensor) -> Tensor:
        x = x + self.mha(self.ln1(x), self.ln1(x), hidden)
        return x + self.ffn.net(self.ln2(x))


class PreNormDecoderLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ln1, self.ln2, self.ln3 = (nn.LayerNorm(D_MODEL) for _ in range(3))
        self.self_mha, self.cross_mha, self.ffn = Attention("out_proj"), Attention("out_proj"), PreNormFeedForward()

    def forward(self, x: Tensor, hidden: Tensor, memory: Tensor, src_hidden: Tensor) -> Tensor:
        x = x + self.self_mha(self.ln1(x), self.ln1(x), hidden)
        x = x + self.cross_mha(self.ln2(x), self.ln2(memory), src_hidden)
        return x + self.ffn.net(self.ln3(x))


class PreNormArticle(nn.Module):
    """Padding is hidden as a key, and as a query it sees nothing in particular."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = stack(PreNormEncoderLayer, "embed", "pos", V_SRC)
        self.decoder = stack(PreNormDecoderLayer, "embed", "pos", V_TGT, norm=nn.LayerNorm(D_MODEL))
        self.generator = nn.Linear(D_MODEL, V_TGT)

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        def hidden(queries: Tensor, keys: Tensor) -> Tensor:
            return (queries == 0)[:, None, :, None] | (keys == 0)[:, None, None, :]

        memory = self.encoder.embed(src) + self.encoder.pos.pe[:, : src.size(1)]
        for layer in self.encoder.layers:
            memory = layer(memory, hidden(src, src))
        x = self.decoder.embed(tgt) + self.decoder.pos.pe[:, : tgt.size(1)]
        future = torch.ones(tgt.size(1), tgt.size(1), dtype=torch.bool).triu(1)
        for layer in self.decoder.layers:
            x = layer(x, hidden(tgt, tgt) | future, memory, hidden(tgt, src))
        return self.generator(self.decoder.norm(x))


RENAMES = {
    PostNormArticle: [
        (r"^encoder\.embedding", "src_embed"), (r"^decoder\.embedding", "tgt_embed"),
        (r"^decoder\.fc_out", "generator"), (r"_attn\.fc_out", "_attn.w_o"),
    ],
    PreNormArticle: [
        (r"^encoder\.embed\b", "src_embed"), (r"^decoder\.embed\b", "tgt_embed"), (r"\bln(\d)", r"norm\1"),
        (r"\b(self_|cross_)?mha\b", lambda m: f"{m[1] or 'self_'}attn"), (r"out_proj", "w_o"),
        (r"ffn\.net\.0", "feed_forward.w_1"), (r"ffn\.net\.3", "feed_forward.w_2"),
    ],
}  # fmt: skip


def carried_over(article: nn.Module) -> dict[str, Tensor]:
    """The article's weights under our names."""
    state = {}
    for name, tensor in article.state_dict().items():
        for pattern, replacement in RENAMES[type(article)]:
            name = re.sub(pattern, replacement, name)
        if not name.endswith(".pe"):
            state[name] = tensor
    if isinstance(article, PreNormArticle):
        state |= {"encoder.norm.weight": torch.ones(D_MODEL), "encoder.norm.bias": torch.zeros(D_MODEL)}
    return state


def fold_second_norms_into_memory_projections(state: dict[str, Tensor]) -> None:
    """``W (g * n + b) + c = (W g) n + (W b + c)``: the norm of the memory moves into what reads it."""
    for i in range(LAYERS):
        layer = f"decoder.layers.{i}"
        gain, bias = state[f"{layer}.norm2.weight"], state[f"{layer}.norm2.bias"]
        for w in ("w_k", "w_v"):
            weight, offset = state[f"{layer}.cross_attn.{w}.weight"], state[f"{layer}.cross_attn.{w}.bias"]
            state[f"{layer}.cross_attn.{w}.weight"] = weight * gain
            state[f"{layer}.cross_attn.{w}.bias"] = offset + weight @ bias


def randomised(article: nn.Module, keep: str = "nothing") -> nn.Module:
    """Random weights everywhere but in the norms that ``keep`` names."""
    gen = torch.Generator().manual_seed(4)
    with torch.no_grad():
        for name, parameter in article.named_parameters():
            norm = re.search(r"norm|ln\d", name) is not None
            if not re.search(keep, name):
                noise = torch.randn(parameter.shape, generator=gen, dtype=torch.float64) / 3
                parameter.copy_(noise + (norm and name.endswith("weight")))
    return article


def ours(state: dict[str, Tensor], **fields: object) -> Transformer:
    config = ModelConfig(
        src_vocab_size=V_SRC, tgt_vocab_size=V_TGT, d_model=D_MODEL, n_heads=HEADS, d_ff=D_FF, n_encoder_layers=LAYERS,
        n_decoder_layers=LAYERS, dropout=0.1, share_embeddings="none", generator_bias=True, **fields,
    )  # fmt: skip
    model = Transformer(config).double().eval()
    model.load_state_dict(state)
    return model


@torch.no_grad()
def assert_same_logits(article: nn.Module, model: Transformer) -> None:
    torch.testing.assert_close(model(SRC, TGT_IN)[REAL], article(SRC, TGT_IN)[REAL], rtol=1e-12, atol=1e-12)


def test_the_post_norm_article_gives_our_logits() -> None:
    article = randomised(PostNormArticle().double())
    assert_same_logits(article, ours(carried_over(article)))


PRE = dict(norm="pre", activation="gelu", scale_embeddings=False)


def test_the_pre_norm_article_gives_our_logits_at_its_initial_second_norms() -> None:
    article = randomised(PreNormArticle().double(), keep=r"decoder\.layers\.\d\.ln2")
    assert_same_logits(article, ours(carried_over(article), **PRE))


def test_the_pre_norm_article_gives_our_logits_once_trained_too() -> None:
    article = randomised(PreNormArticle().double())
    state = carried_over(article)
    with pytest.raises(AssertionError):
        assert_same_logits(article, ours(state, **PRE))
    fold_second_norms_into_memory_projections(state)
    assert_same_logits(article, ours(state, **PRE))

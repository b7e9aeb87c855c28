# SPDX-License-Identifier: Apache-2.0
"""Models of PyTorch that Tilewright is run with: architectures by configuration, random weights, nothing is downloaded.

MODELS[name]() gives (module in eval mode, example inputs). Names: FAMILY/NAME. Those of torchvision come from its own list of models, so
that a new one is found by itself. CI: the small ones that a test run has time for."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

Made = tuple[nn.Module, tuple[Any, ...]]


def image(*shape: int) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(1))


def tokens(count: int, *shape: int) -> torch.Tensor:
    return torch.randint(0, count, shape, generator=torch.Generator().manual_seed(2))


# ---- torchvision

class Detector(nn.Module):
    """One picture in, the tensors of what is found out."""

    def __init__(self, model: nn.Module, names: list[str]):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, picture: torch.Tensor) -> list[torch.Tensor]:
        if torch.jit.is_scripting():
            found = self.model([picture])[1][0]
        else:
            found = self.model([picture])[0]
        return [found[name] for name in self.names]


SCORES = ("cls_logits", "cls_score", "classification_head.module_list")


def spread(model: nn.Module, picture: torch.Tensor) -> None:
    """Gives random weights activations and scores as trained ones have: batch normalisation with the picture's own statistics, and scores that are
    neither all the same nor all saturated. Which boxes are kept would otherwise be decided among equal scores, in no order that PyTorch promises."""
    def scaled(layer: nn.Module, _: Any, out: torch.Tensor) -> torch.Tensor | None:
        if layer in done:
            return None
        done.add(layer)
        bias = torch.zeros(()) if layer.bias is None else layer.bias.reshape(-1, *[1] * (out.dim() - 2))
        factor = 2 / (out - bias).std()
        layer.weight.mul_(factor)
        return (out - bias) * factor + bias

    done: set[nn.Module] = set()
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
    scores = [m for path, m in model.named_modules() if isinstance(m, (nn.Conv2d, nn.Linear)) and any(part in path for part in SCORES) and getattr(m, "groups", 1) == 1]
    hooks = [m.register_forward_hook(scaled) for m in scores]
    for m in norms:
        m.momentum = None
        m.train()
    with torch.no_grad():
        model([picture, picture.flip(-1)])
    for hook in hooks:
        hook.remove()
    for m in norms:
        m.momentum = 0.1
        m.eval()


def vision(name: str, size: int | None = None) -> Made:
    import torchvision
    options: dict[str, Any] = {"weights": None}
    torch.manual_seed(3)
    if hasattr(torchvision.models.detection, name):
        sides = {} if name.startswith("ssd") or "320" in name else {"min_size": 160, "max_size": 160}
        model = getattr(torchvision.models.detection, name)(weights=None, weights_backbone=None, **sides)
        spread(model.eval(), image(3, size or 160, size or 160))
        more = ["masks"] if name.startswith("mask") else ["keypoints", "keypoints_scores"] if name.startswith("keypoint") else []
        return Detector(model, ["boxes", "labels", "scores", *more]).eval(), (image(3, size or 160, size or 160),)
    if hasattr(torchvision.models.segmentation, name):
        return getattr(torchvision.models.segmentation, name)(weights=None, weights_backbone=None).eval(), (image(1, 3, size or 128, size or 128),)
    if hasattr(torchvision.models.video, name):
        frames, side = (16, 224) if name.startswith(("mvit", "swin")) else (14, 224) if name == "s3d" else (8, 64)
        return getattr(torchvision.models.video, name)(weights=None).eval(), (image(1, 3, frames, side, side),)
    if name in ("googlenet", "inception_v3"):
        options |= {"aux_logits": False, "init_weights": True} if name == "inception_v3" else {"aux_logits": False, "init_weights": False}
    return getattr(torchvision.models, name)(**options).eval(), (image(1, 3, size or (299 if name == "inception_v3" else 224), size or (299 if name == "inception_v3" else 224)),)


def vision_names() -> dict[str, list[str]]:
    """Builders of torchvision by family."""
    import torchvision
    from torchvision import models

    def builders(module: Any) -> list[str]:
        return sorted(n for n, f in vars(module).items() if callable(f) and n[0].islower() and not n.startswith(("get_", "list_")) and getattr(f, "__module__", "").startswith(module.__name__)
                      and "weights" in getattr(getattr(f, "__wrapped__", f), "__annotations__", {}))

    families = {"detection": builders(models.detection), "segmentation": builders(models.segmentation), "video": builders(models.video)}
    taken = {n for names in families.values() for n in names}
    families["classification"] = [n for n in builders(models) if n not in taken and n != "raft_large" and n != "raft_small"]
    return families


# ---- transformers

def _tiny(**more: Any) -> dict[str, Any]:
    return {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, **more}


class Picked(nn.Module):
    """A model whose arguments have names and whose result is a class: the tensors it is asked for."""

    def __init__(self, model: nn.Module, arguments: list[str], results: list[str]):
        super().__init__()
        self.model, self.arguments, self.results = model, arguments, results

    def forward(self, *values: Any) -> Any:
        out = self.model(**dict(zip(self.arguments, values)), return_dict=True)
        return tuple(out[name] for name in self.results)


def bert() -> Made:
    import transformers as t
    model = t.BertModel(t.BertConfig(**_tiny(vocab_size=500, max_position_embeddings=64), attn_implementation="eager"))
    return Picked(model.eval(), ["input_ids", "attention_mask"], ["last_hidden_state", "pooler_output"]).eval(), (tokens(500, 2, 16), torch.ones(2, 16, dtype=torch.int64))


def distilbert() -> Made:
    import transformers as t
    model = t.DistilBertModel(t.DistilBertConfig(vocab_size=500, dim=64, n_layers=2, n_heads=4, hidden_dim=128, max_position_embeddings=64))
    return Picked(model.eval(), ["input_ids", "attention_mask"], ["last_hidden_state"]).eval(), (tokens(500, 2, 16), torch.ones(2, 16, dtype=torch.int64))


def gpt2() -> Made:
    import transformers as t
    model = t.GPT2LMHeadModel(t.GPT2Config(vocab_size=500, n_embd=64, n_layer=2, n_head=4, n_positions=64, use_cache=False))
    return Picked(model.eval(), ["input_ids"], ["logits"]).eval(), (tokens(500, 1, 16),)


def _t5() -> Any:
    import transformers as t
    return t.T5Config(vocab_size=500, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, use_cache=False, decoder_start_token_id=0)


def t5_encoder() -> Made:
    import transformers as t
    return Picked(t.T5EncoderModel(_t5()).eval(), ["input_ids"], ["last_hidden_state"]).eval(), (tokens(500, 1, 16),)


def t5() -> Made:
    import transformers as t
    return Picked(t.T5ForConditionalGeneration(_t5()).eval(), ["input_ids", "decoder_input_ids"], ["logits"]).eval(), (tokens(500, 1, 16), tokens(500, 1, 6))


def _whisper() -> Any:
    import transformers as t
    return t.WhisperConfig(vocab_size=500, num_mel_bins=20, encoder_layers=2, encoder_attention_heads=4, decoder_layers=2, decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128,
                           d_model=64, max_source_positions=50, max_target_positions=32, use_cache=False, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)


def whisper_encoder() -> Made:
    import transformers as t
    return Picked(t.WhisperModel(_whisper()).get_encoder().eval(), ["input_features"], ["last_hidden_state"]).eval(), (image(1, 20, 100),)


def whisper() -> Made:
    import transformers as t
    return Picked(t.WhisperModel(_whisper()).eval(), ["input_features", "decoder_input_ids"], ["last_hidden_state"]).eval(), (image(1, 20, 100), tokens(500, 1, 6))


def vit() -> Made:
    import transformers as t
    model = t.ViTModel(t.ViTConfig(**_tiny(image_size=64, patch_size=16)))
    return Picked(model.eval(), ["pixel_values"], ["last_hidden_state", "pooler_output"]).eval(), (image(1, 3, 64, 64),)


def clip() -> Made:
    import transformers as t
    text = _tiny(vocab_size=500, max_position_embeddings=32, eos_token_id=499, bos_token_id=0, pad_token_id=1)
    model = t.CLIPModel(t.CLIPConfig(text_config=text, vision_config=_tiny(image_size=64, patch_size=16), projection_dim=32))
    return Picked(model.eval(), ["input_ids", "pixel_values", "attention_mask"], ["logits_per_image", "text_embeds", "image_embeds"]).eval(), (tokens(500, 2, 8), image(1, 3, 64, 64), torch.ones(2, 8, dtype=torch.int64))


def wav2vec2() -> Made:
    import transformers as t
    model = t.Wav2Vec2Model(t.Wav2Vec2Config(**_tiny(conv_dim=(32, 32, 32), conv_stride=(5, 2, 2), conv_kernel=(10, 3, 3), num_feat_extract_layers=3, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4)))
    return Picked(model.eval(), ["input_values"], ["last_hidden_state"]).eval(), (image(1, 2000),)


def mobilevit() -> Made:
    import transformers as t
    model = t.MobileViTModel(t.MobileViTConfig(image_size=64, hidden_sizes=[32, 48, 64], neck_hidden_sizes=[16, 16, 24, 32, 48, 64, 96], num_attention_heads=4, initializer_range=0.3))
    return Picked(model.eval(), ["pixel_values"], ["last_hidden_state", "pooler_output"]).eval(), (image(1, 3, 64, 64),)


def sam_decoder() -> Made:
    import transformers as t
    config = t.SamConfig(vision_config={"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": 64, "patch_size": 16, "output_channels": 32, "mlp_dim": 64},
                         prompt_encoder_config={"hidden_size": 32, "image_size": 64, "patch_size": 16},
                         mask_decoder_config={"hidden_size": 32, "mlp_dim": 64, "num_attention_heads": 2, "iou_head_hidden_dim": 32})
    decoder = t.SamModel(config).mask_decoder.eval()

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.decoder = decoder

        def forward(self, picture: Any, places: Any, sparse: Any, dense: Any) -> Any:
            return self.decoder(picture, places, sparse, dense, multimask_output=True)[:2]

    return Decoder().eval(), (image(1, 32, 4, 4), image(1, 32, 4, 4), image(1, 1, 2, 32), image(1, 32, 4, 4))


class CachedDecoder(nn.Module):
    """A Llama-shaped decoder whose cache goes in and comes out: ids, position, then keys and values of each layer, of a fixed length."""

    def __init__(self, length: int = 32, width: int = 64, heads: int = 4, groups: int = 2, layers: int = 2, words: int = 500):
        super().__init__()
        self.length, self.heads, self.groups, self.head = length, heads, groups, width // heads
        self.embed = nn.Embedding(words, width)
        self.layers = nn.ModuleList(nn.ModuleDict({
            "q": nn.Linear(width, width, bias=False), "k": nn.Linear(width, groups * self.head, bias=False), "v": nn.Linear(width, groups * self.head, bias=False),
            "o": nn.Linear(width, width, bias=False), "gate": nn.Linear(width, 2 * width, bias=False), "up": nn.Linear(width, 2 * width, bias=False),
            "down": nn.Linear(2 * width, width, bias=False), "before": nn.RMSNorm(width, 1e-5), "between": nn.RMSNorm(width, 1e-5)}) for _ in range(layers))
        self.norm, self.out = nn.RMSNorm(width, 1e-5), nn.Linear(width, words, bias=False)
        self.register_buffer("frequencies", 10000.0 ** (-torch.arange(0, self.head, 2, dtype=torch.float32) / self.head), persistent=False)

    def turn(self, x: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        angles = places[:, None].to(torch.float32) * self.frequencies
        angles = torch.cat([angles, angles], -1)
        half = x.shape[-1] // 2
        return x * angles.cos() + torch.cat([-x[..., half:], x[..., :half]], -1) * angles.sin()

    def forward(self, ids: torch.Tensor, start: torch.Tensor, *caches: torch.Tensor) -> Any:
        count = ids.shape[1]
        places = start + torch.arange(count)
        seen = torch.arange(self.length)[None, :] <= places[:, None]
        x, new = self.embed(ids), []
        for i, layer in enumerate(self.layers):
            y = layer["before"](x)
            q, k, v = (layer[n](y).view(1, count, -1, self.head).transpose(1, 2) for n in "qkv")
            q, k = self.turn(q, places), self.turn(k, places)
            keys, values = caches[2 * i].index_copy(2, places, k), caches[2 * i + 1].index_copy(2, places, v)
            new += [keys, values]
            wide = [c.repeat_interleave(self.heads // self.groups, dim=1) for c in (keys, values)]
            y = nn.functional.scaled_dot_product_attention(q, *wide, attn_mask=seen)
            x = x + layer["o"](y.transpose(1, 2).reshape(1, count, -1))
            y = layer["between"](x)
            x = x + layer["down"](nn.functional.silu(layer["gate"](y)) * layer["up"](y))
        return (self.out(self.norm(x))[:, -1], *new)

    def empty(self) -> tuple[torch.Tensor, ...]:
        return tuple(torch.zeros(1, self.groups, self.length, self.head) for _ in range(2 * len(self.layers)))


def llama_prompt() -> Made:
    model = seeded(CachedDecoder).eval()
    return model, (tokens(500, 1, 8), torch.tensor([0]), *model.empty())


def llama_step() -> Made:
    model = seeded(CachedDecoder).eval()
    return model, (tokens(500, 1, 1), torch.tensor([8]), *model.empty())


def llama() -> Made:
    import transformers as t
    model = t.LlamaForCausalLM(t.LlamaConfig(**_tiny(vocab_size=500, num_key_value_heads=2, max_position_embeddings=64), use_cache=False))
    return Picked(model.eval(), ["input_ids"], ["logits"]).eval(), (tokens(500, 1, 8),)


# ---- plain PyTorch

class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.lstm, self.out = nn.Embedding(100, 24), nn.LSTM(24, 16, num_layers=2, bidirectional=True, batch_first=True), nn.Linear(32, 7)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return torch.log_softmax(self.out(self.lstm(self.embed(words))[0]), -1)


class GruTagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru, self.rnn = nn.GRU(12, 16, bidirectional=True), nn.RNN(32, 8)

    def forward(self, x: torch.Tensor) -> Any:
        y, state = self.gru(x)
        return (*self.rnn(y), state)


def transformer() -> Made:
    model = nn.Transformer(d_model=32, nhead=4, num_encoder_layers=2, num_decoder_layers=2, dim_feedforward=64, batch_first=True)
    return model.eval(), (image(2, 10, 32), image(2, 7, 32))


class BeamSearch(nn.Module):
    """Three steps of a beam search over a small recurrent cell; the loop's length is known only when it runs."""

    def __init__(self, words: int = 20, width: int = 16, beam: int = 3):
        super().__init__()
        self.beam, self.words = beam, words
        self.embed, self.cell, self.out = nn.Embedding(words, width), nn.GRUCell(width, width), nn.Linear(width, words)

    def forward(self, state: torch.Tensor, steps: int) -> tuple[torch.Tensor, torch.Tensor]:
        state = state.expand(self.beam, -1)
        ids = torch.zeros(self.beam, 1, dtype=torch.int64)
        scores = torch.full((self.beam,), -1e9)
        scores[0] = 0.0
        for _ in range(steps):
            state = self.cell(self.embed(ids[:, -1]), state)
            total = torch.log_softmax(self.out(state), -1) + scores[:, None]
            scores, flat = total.reshape(-1).topk(self.beam)
            parent = torch.div(flat, self.words, rounding_mode="floor")
            state = state[parent]
            ids = torch.cat([ids[parent], (flat % self.words)[:, None]], 1)
        return ids, scores


def small(name: str) -> Made:
    """The model on a small input, where it takes any size."""
    family, _, short = name.partition("/")
    if family == "classification" and short not in ("inception_v3",) and not short.startswith(("vit", "swin", "maxvit")):
        return vision(short, 64)
    return MODELS[name]()


def close(got: Any, want: Any) -> bool:
    """Equal within 1e-3 of each value and 1e-4 of the largest; whole numbers exactly."""
    got, want = torch.as_tensor(got), torch.as_tensor(want)
    if got.shape != want.shape or got.dtype != want.dtype:
        return False
    if not want.dtype.is_floating_point:
        return bool(torch.equal(got, want))
    return bool(torch.allclose(got, want, rtol=1e-3, atol=1e-4 * float(want.abs().max()) if want.numel() else 0, equal_nan=True))


def close_found(got: list[Any], want: list[torch.Tensor]) -> int | None:
    """Whether detectors found the same: boxes, labels, scores and what else belongs to each. None: they did not; else how many finds stand in another
    place than PyTorch's. Scores are compared in order, and each find with the one in its place or, where PyTorch's own scores of the two places are within
    the tolerance of every output (rtol 1e-3, atol 1e-4 of the largest), with that one: which comes first decides nothing else. Each find is taken once."""
    got = [torch.as_tensor(g) for g in got]
    if [(g.shape, g.dtype) for g in got] != [(w.shape, w.dtype) for w in want] or not close(got[2], want[2]):
        return None
    scores = want[2]
    near = [1e-3 * abs(float(s)) + 1e-4 * float(scores.max()) for s in scores]
    largest = [float(w.abs().max()) if w.numel() else 0 for w in want]

    def same(i: int, j: int) -> bool:
        """Whether our j-th find is PyTorch's i-th."""
        return all(torch.allclose(g[j], w[i], rtol=1e-3, atol=1e-4 * most) if w.dtype.is_floating_point else torch.equal(g[j], w[i]) for g, w, most in zip(got, want, largest))

    left, moved = set(range(len(scores))), 0
    for i in range(len(scores)):
        places = sorted((j for j in left if j == i or abs(float(scores[i] - scores[j])) <= near[i]), key=lambda j: (j != i, abs(j - i)))
        found = next((j for j in places if same(i, j)), None)
        if found is None:
            return None
        left.remove(found)
        moved += found != i
    return moved


def common_finds(got: list[Any], want: list[torch.Tensor]) -> int:
    """How many of PyTorch's finds have an equal one in `got`, wherever it stands: the box within a hundredth of a pixel and 1e-3 of itself, the label, and the
    score within 2e-3; what else belongs to a find is not looked at, since masks and keypoints jump where boxes do not. Each find of `got` is taken once."""
    got = [torch.as_tensor(g) for g in got]
    left, common = set(range(len(got[2]))), 0
    for box, label, score in zip(*want[:3]):
        found = next((j for j in sorted(left) if int(got[1][j]) == int(label) and abs(float(got[2][j] - score)) <= 2e-3
                      and torch.allclose(got[0][j], box, rtol=1e-3, atol=1e-2)), None)
        if found is not None:
            left.remove(found)
            common += 1
    return common


def moved_by_one_unit(picture: torch.Tensor, seed: int) -> torch.Tensor:
    """Each value one unit in its last place up or down."""
    up = torch.rand(picture.shape, generator=torch.Generator().manual_seed(seed)) < 0.5
    return torch.where(up, torch.nextafter(picture, picture + 1), torch.nextafter(picture, picture - 1))


def seeded(make: Callable[..., nn.Module], *arguments: Any) -> Any:
    torch.manual_seed(0)
    return make(*arguments)


MODELS: dict[str, Callable[[], Made]] = {
    f"transformers/{f.__name__}": f for f in (bert, distilbert, gpt2, t5_encoder, t5, whisper_encoder, whisper, vit, clip, wav2vec2, mobilevit, sam_decoder, llama)}
MODELS |= {"plain/lstm_tagger": lambda: (Tagger().eval(), (tokens(100, 2, 9),)), "plain/gru_tagger": lambda: (GruTagger().eval(), (image(9, 2, 12),)),
           "plain/transformer": transformer, "plain/llama_prompt": llama_prompt, "plain/llama_step": llama_step}
try:
    MODELS |= {f"{family}/{name}": (lambda name=name: vision(name)) for family, names in vision_names().items() for name in names}
except ImportError:
    pass  # no torchvision: its models are not in the list

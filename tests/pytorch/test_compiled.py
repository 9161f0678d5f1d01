"""torch.compile: Triton compiles kernels for the GPU at hand, whose machine code then runs."""

import os
import tempfile
import unittest

import torch
from torch.nn import functional

from against_cpu import AgainstCpu


class CompiledTest(AgainstCpu):
    @classmethod
    def setUpClass(cls):
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        os.environ.update(TORCHINDUCTOR_CACHE_DIR=folder, TRITON_CACHE_DIR=folder)

    def compiled(self, function, *inputs):
        expected = function(*inputs)
        self.compare(torch.compile(function)(*[x.cuda() for x in inputs]), expected)

    def test_elements(self):
        self.compiled(lambda x, y: functional.gelu(x * 2 + y).clamp(max=1.5), torch.randn(33, 70),
                      torch.randn(70))

    def test_reductions(self):
        self.compiled(lambda x: functional.softmax(x, -1), torch.randn(9, 300))


if __name__ == "__main__":
    unittest.main()

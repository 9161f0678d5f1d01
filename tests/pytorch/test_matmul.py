"""Matrix products: cuBLAS and cuBLASLt in all types."""

import unittest

import torch
from torch.nn import functional

from against_cpu import AgainstCpu

TYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


class MatmulTest(AgainstCpu):
    def products(self, function, *shapes):
        for dtype in TYPES:
            with self.subTest(dtype=dtype):
                self.check(function, *[torch.randn(shape).to(dtype) for shape in shapes])

    def test_matrices(self):
        self.products(torch.mm, (33, 65), (65, 17))

    def test_vectors(self):
        self.products(torch.mv, (33, 65), (65,))
        self.products(torch.dot, (65,), (65,))
        self.products(torch.outer, (33,), (17,))

    def test_batches(self):
        self.products(torch.bmm, (3, 16, 24), (3, 24, 8))
        self.products(torch.matmul, (2, 3, 8, 16), (3, 16, 8))

    def test_transposed(self):
        self.products(lambda a, b: a.t() @ b, (24, 16), (24, 8))
        self.products(lambda a, b: a @ b.t(), (16, 24), (8, 24))
        self.products(lambda a, b: a.transpose(1, 2) @ b.transpose(1, 2), (3, 24, 16), (3, 8, 24))

    def test_strided(self):
        self.products(lambda a, b: a[:, ::2] @ b[1:, :8], (16, 48), (25, 20))
        self.products(lambda a, b: a.permute(1, 0, 2) @ b.permute(1, 2, 0), (16, 3, 24), (8, 3, 24))

    def test_linear_with_bias(self):
        self.products(functional.linear, (5, 24), (16, 24), (16,))
        self.products(functional.linear, (2, 5, 24), (16, 24), (16,))
        self.products(lambda *a: functional.relu(functional.linear(*a)), (5, 24), (16, 24), (16,))

    def test_added_to_another(self):
        self.products(lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2.0),
                      (16, 8), (16, 24), (24, 8))
        self.products(lambda c, a, b: torch.baddbmm(c, a, b, beta=0.5, alpha=2.0),
                      (3, 16, 8), (3, 16, 24), (3, 24, 8))

    def test_tf32(self):
        a, b = torch.randn(64, 64), torch.randn(64, 64)
        before = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = True
        try:
            self.check(torch.mm, a, b, rtol=2e-3, atol=2e-2)
            self.check(functional.linear, a, b, torch.randn(64), rtol=2e-3, atol=2e-2)
        finally:
            torch.backends.cuda.matmul.allow_tf32 = before

    def test_complex(self):
        self.check(torch.mm, torch.randn(9, 12, dtype=torch.complex64),
                   torch.randn(12, 7, dtype=torch.complex64), rtol=1e-4, atol=1e-4)

    def test_empty(self):
        self.check(torch.mm, torch.randn(4, 0), torch.randn(0, 3))
        self.check(torch.mm, torch.randn(0, 4), torch.randn(4, 3))

    def test_einsum(self):
        self.products(lambda a, b: torch.einsum("bik,bkj->bij", a, b), (2, 8, 16), (2, 16, 4))


if __name__ == "__main__":
    unittest.main()

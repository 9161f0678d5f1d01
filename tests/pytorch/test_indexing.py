"""Indexing, sorting and reductions: PyTorch's own kernels and those of CUB."""

import unittest

import torch
from torch.nn import functional

from against_cpu import AgainstCpu


class IndexingTest(AgainstCpu):
    def setUp(self):
        super().setUp()
        self.x = torch.randn(5, 7)
        self.rows = torch.tensor([3, 0, 0, 4])

    def test_gather_and_select(self):
        places = torch.randint(0, 5, (4, 7))
        self.check_exactly(lambda x, i: x.gather(0, i), self.x, places)
        self.check_exactly(lambda x, i: x.index_select(0, i), self.x, self.rows)
        self.check_exactly(lambda x, i: x.take(i), self.x, self.rows)
        self.check_exactly(lambda x, i: torch.take_along_dim(x, i, 0), self.x, places)

    def test_scatter(self):
        places = torch.stack([torch.randperm(7) for _ in range(3)])
        values = torch.randn(3, 7)
        self.check_exactly(lambda x, i, v: x.scatter(1, i, v), self.x, places, values)
        self.check(lambda x, i, v: x.scatter_add(1, i, v), self.x, places % 4, values)
        for way in ("sum", "prod", "mean", "amax", "amin"):
            self.check(lambda x, i, v: x.scatter_reduce(1, i, v, way), self.x, places % 4, values)

    def test_index_add_copy_fill(self):
        source = torch.randn(4, 7)
        self.check(lambda x, i, s: x.index_add(0, i, s), self.x, self.rows, source)
        self.check_exactly(lambda x, i, s: x.index_copy(0, i, s), self.x,
                           torch.tensor([3, 0, 2, 4]), source)
        self.check_exactly(lambda x, i: x.index_fill(0, i, 2.5), self.x, self.rows)

    def test_index_put(self):
        columns = torch.tensor([1, 2, 2, 6])
        values = torch.randn(4)

        def put(x, i, j, v, accumulate):
            return x.clone().index_put_((i, j), v, accumulate=accumulate)

        self.check_exactly(put, self.x, torch.tensor([3, 0, 1, 4]), columns, values, False)
        self.check(put, self.x, torch.tensor([3, 0, 0, 3]), torch.tensor([1, 2, 2, 1]), values,
                   True)

    def test_masks(self):
        self.check_exactly(lambda x: x.masked_select(x > 0.3), self.x)
        self.check_exactly(lambda x: x.masked_fill(x > 0.3, -1.0), self.x)
        self.check_exactly(lambda x: x.masked_scatter(x > 0.3, x.flip(0)), self.x)
        self.check_exactly(lambda x: torch.where(x > 0, x, -x), self.x)
        self.check_exactly(lambda x: x[x > 0.3], self.x)

    def test_nonzero(self):
        self.check_exactly(lambda x: (x > 0.3).nonzero(), self.x)
        self.check_exactly(lambda x: torch.count_nonzero(x > 0.3, dim=1), self.x)
        self.check_exactly(lambda x: torch.argwhere(x > 9), self.x)

    def test_lists_of_indices(self):
        columns = torch.tensor([1, 2, 2, 6])
        self.check_exactly(lambda x, i, j: (x[i], x[i, j], x[:, j], x[i][:, j], x[None, i]),
                           self.x, self.rows, columns)
        self.check_exactly(lambda x: (x[::2, 1:-1], x[..., -1], x.flip(1), x.roll(2, 1)), self.x)

        def assign(x, i, j):
            x = x.clone()
            x[i, j] = 7.0
            x[:, j] += 1.0
            x[x < 0] = 0.0
            return x

        self.check_exactly(assign, self.x, self.rows, columns)

    def test_embedding(self):
        table = torch.randn(11, 6)
        words = torch.randint(0, 11, (3, 4))
        self.check_exactly(functional.embedding, words, table)
        self.check(functional.embedding_bag, words, table)
        self.check_exactly(lambda w: functional.one_hot(w, 11), words)

    def test_joining_and_repeating(self):
        self.check_exactly(lambda x: torch.cat([x, x.t().reshape(5, 7), x[:1]]), self.x)
        self.check_exactly(lambda x: (torch.stack([x, x], 1), x.repeat(2, 3), x.tril(), x.triu(1),
                                      x.repeat_interleave(3, 0), x.unfold(1, 3, 2)), self.x)
        self.check_exactly(lambda x: torch.cat([x[i].expand(2, 7) for i in range(5)] * 20), self.x)


class SortingTest(AgainstCpu):
    def test_sort(self):
        for shape in ((50,), (6, 40), (2, 3000)):
            x = torch.randn(shape)
            self.check_exactly(lambda t: tuple(t.sort(-1)), x)
            self.check_exactly(lambda t: tuple(t.sort(dim=0, descending=True, stable=True)), x)
            self.check_exactly(lambda t: t.argsort(-1), x)

    def test_types(self):
        for dtype in (torch.int64, torch.int32, torch.uint8, torch.float16, torch.float64):
            x = (torch.randperm(200) - (0 if dtype == torch.uint8 else 100)).to(dtype)
            self.check_exactly(lambda t: tuple(t.sort(stable=True)), x)
        self.check_exactly(lambda t: tuple(t.sort(stable=True)), torch.rand(40) > 0.5)

    def test_topk(self):
        x = torch.randn(4, 300)
        for largest in (True, False):
            self.check_exactly(lambda t: tuple(t.topk(7, largest=largest)), x)
            self.check_exactly(lambda t: tuple(t.kthvalue(5)), x)
        self.check_exactly(lambda t: tuple(t.topk(3, dim=0)), x)

    def test_unique(self):
        x = torch.randint(0, 9, (60,))
        self.check_exactly(lambda t: torch.unique(t, return_inverse=True, return_counts=True), x)
        self.check_exactly(lambda t: torch.unique_consecutive(t, return_counts=True), x)
        self.check_exactly(lambda t: torch.unique(t, dim=0), x.view(20, 3) % 2)

    def test_searching(self):
        x = torch.randn(30).sort().values
        self.check_exactly(torch.searchsorted, x, torch.randn(5, 3))
        self.check_exactly(lambda t: torch.bucketize(t, t[::7].contiguous()), x)
        self.check_exactly(lambda t: torch.bincount(t, minlength=12), torch.randint(0, 9, (60,)))
        self.check_exactly(lambda t: torch.histc(t, 8, -2, 2), x)
        x = torch.randint(0, 5, (4, 33))
        x[:, ::3] = 2  # the commonest: which of several that are is nobody's promise
        self.check_exactly(lambda t: (t.median(-1).values, t.mode(-1).values), x)


class ReductionTest(AgainstCpu):
    # No element at ±0.5 of another: ties and roundings decide nothing.
    WAYS = {
        "sum": torch.Tensor.sum, "mean": torch.Tensor.mean, "amax": torch.Tensor.amax,
        "amin": torch.Tensor.amin, "var": torch.Tensor.var, "std": torch.Tensor.std,
        "norm": lambda t, dim: torch.linalg.vector_norm(t, dim=dim),
        "logsumexp": torch.Tensor.logsumexp,
    }

    def test_all_dimensions(self):
        x = torch.randn(4, 33, 17)
        for name, way in self.WAYS.items():
            for dim in (0, 1, -1, (0, 2), (0, 1, 2)):
                with self.subTest(way=name, dim=dim):
                    self.check(lambda t: way(t, dim), x)

    def test_long(self):
        x = torch.randn(3, 20_000)
        for name, way in self.WAYS.items():
            with self.subTest(way=name):
                self.check(lambda t: way(t, 1), x, rtol=1e-4, atol=1e-3)
                self.check(lambda t: way(t, (0, 1)), x, rtol=1e-4, atol=1e-3)

    def test_types(self):
        x = torch.randn(6, 70)
        for dtype in (torch.float64, torch.float16, torch.bfloat16):
            with self.subTest(dtype=dtype):
                self.check(lambda t: (t.amax(1), t.sum(1), t.mean(0)), x.to(dtype),
                           rtol=2e-2, atol=8e-2)
        whole = torch.randint(-9, 9, (6, 70))
        self.check_exactly(lambda t: (t.sum(1), t.prod(0), t.amax(), (t > 7).any(1),
                                      (t > -9).all(0)), whole)

    def test_places(self):
        x = torch.randn(5, 300)
        self.check_exactly(lambda t: (t.argmax(), t.argmax(1), t.argmin(0), t.argmin(1, True)), x)
        self.check_exactly(lambda t: (tuple(t.max(1)), tuple(t.min(0)), t.aminmax(dim=1)), x)

    def test_products(self):
        self.check(lambda t: (t.prod(), t.prod(0), t.prod(1)), torch.rand(5, 9) + 0.5)

    def test_scans(self):
        x = torch.randn(3, 2000)
        self.check(lambda t: (t.cumsum(1), t.cumsum(0), t.logcumsumexp(1)), x, rtol=1e-4, atol=1e-3)
        self.check(lambda t: t.cumprod(1), torch.rand(3, 40) + 0.5)
        self.check_exactly(lambda t: (tuple(t.cummax(1)), tuple(t.cummin(0))), x)
        self.check_exactly(lambda t: t.cumsum(0), torch.randint(0, 9, (3000,)))

    def test_of_nothing(self):
        x = torch.randn(0, 3)
        self.check_exactly(lambda t: (t.sum(), t.sum(0), t.prod(0)), x)


if __name__ == "__main__":
    unittest.main()

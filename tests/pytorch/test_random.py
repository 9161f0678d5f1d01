"""Random numbers with a fixed seed are those of any other CUDA GPU: Philox4x32-10, from a reference
of its own here.

A kernel of PyTorch runs curand_init(seed, subsequence = thread, offset) and has a thread take four
numbers a round; the generator's offset grows by what a thread has taken."""

import unittest

import numpy as np
import torch

SEED = 20261122
THREADS = 256


def philox(seed, subsequences, offset):
    """Four words for each of `subsequences`: the `offset`th, a multiple of 4, and three more."""
    low = np.uint64(0xFFFFFFFF)
    counter = [np.full(len(subsequences), (offset // 4) & 0xFFFFFFFF, np.uint64),
               np.full(len(subsequences), (offset // 4) >> 32, np.uint64),
               subsequences.astype(np.uint64), np.zeros(len(subsequences), np.uint64)]
    key = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        products = [np.uint64(0xD2511F53) * counter[0], np.uint64(0xCD9E8D57) * counter[2]]
        counter = [(products[1] >> np.uint64(32)) ^ counter[1] ^ np.uint64(key[0]),
                   products[1] & low,
                   (products[0] >> np.uint64(32)) ^ counter[3] ^ np.uint64(key[1]),
                   products[0] & low]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack(counter, axis=1).astype(np.uint32)


def grid(count):
    """Blocks of PyTorch's grid-stride kernels (calc_execution_policy)."""
    device = torch.cuda.get_device_properties(0)
    most = device.multi_processor_count * (device.max_threads_per_multi_processor // THREADS)
    return min(most, (count + THREADS - 1) // THREADS)


def words(count, offset=0, seed=SEED):
    """The word of each element, where a thread has four in a round, the grid's size apart."""
    threads = grid(count) * THREADS
    rounds = (count - 1) // (threads * 4) + 1
    return np.concatenate([philox(seed, np.arange(threads), offset + 4 * i).T.reshape(-1)
                           for i in range(rounds)])[:count]


def uniform(word):
    """curand_uniform: (0, 1]."""
    return word.astype(np.float32) * np.float32(2**-32) + np.float32(2**-33)


def normal(count, offset=0):
    """curand_normal4: Box and Muller's of two words each."""
    threads = grid(count) * THREADS
    rounds = (count - 1) // (threads * 4) + 1
    parts = []
    for i in range(rounds):
        four = philox(SEED, np.arange(threads), offset + 4 * i).astype(np.float32)
        u = four[:, 0::2] * np.float32(2**-32) + np.float32(2**-33)
        v = four[:, 1::2] * np.float32(2**-32 * 2 * np.pi) + np.float32(2**-33 * 2 * np.pi)
        radius = np.sqrt(np.float32(-2) * np.log(u))
        pairs = np.stack([radius * np.sin(v), radius * np.cos(v)], axis=2)
        parts.append(pairs.reshape(threads, 4).T.reshape(-1))
    return np.concatenate(parts)[:count]


class RandomTest(unittest.TestCase):
    SIZES = (1, 1000, 100_000)

    def setUp(self):
        torch.manual_seed(SEED)

    def equal(self, actual, expected):
        np.testing.assert_array_equal(actual.cpu().numpy(), expected)

    def test_the_reference(self):
        """Random123's known answers: all bits 0, and all 1."""
        self.assertEqual([hex(word) for word in philox(0, np.array([0]), 0)[0]],
                         ["0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8"])

    def test_uniform(self):
        for size in self.SIZES:
            torch.manual_seed(SEED)
            value = uniform(words(size))
            self.equal(torch.rand(size, device="cuda"), np.where(value == 1, np.float32(0), value))

    def test_the_offset_grows_by_what_was_taken(self):
        first = torch.rand(1000, device="cuda")
        self.equal(first, uniform(words(1000)))
        self.equal(torch.rand(1000, device="cuda"), uniform(words(1000, offset=4)))

    def test_normal(self):
        for size in self.SIZES:
            torch.manual_seed(SEED)
            np.testing.assert_allclose(torch.randn(size, device="cuda").cpu().numpy(), normal(size),
                                       rtol=1e-5, atol=5e-6)

    def test_whole_numbers(self):
        for size in self.SIZES:
            torch.manual_seed(SEED)
            self.equal(torch.randint(-7, 90, (size,), device="cuda"),
                       words(size).astype(np.int64) % 97 - 7)

    def test_bernoulli(self):
        for size in self.SIZES:
            torch.manual_seed(SEED)
            self.equal(torch.empty(size, device="cuda").bernoulli_(0.3),
                       (uniform(words(size)) < np.float32(0.3)).astype(np.float32))

    def test_other_generators(self):
        generator = torch.Generator("cuda")
        generator.manual_seed(2**40 + 5)
        self.equal(torch.rand(1000, device="cuda", generator=generator),
                   uniform(words(1000, seed=2**40 + 5)))
        state = generator.get_state()
        first = torch.rand(10, device="cuda", generator=generator)
        generator.set_state(state)
        self.equal(torch.rand(10, device="cuda", generator=generator), first.cpu().numpy())

    def kept(self, count):
        torch.manual_seed(SEED)
        ones = torch.nn.functional.dropout(torch.ones(count, device="cuda"), 0.25)
        self.assertEqual(set(ones.tolist()), {0.0, float(np.float32(1 / 0.75))})
        return ones > 0

    def test_dropout(self):
        # Vectors of four elements, whose words are one thread's, where their number allows it.
        together = philox(SEED, np.arange(grid(1000) * THREADS), 0).reshape(-1)[:1000]
        self.equal(self.kept(1000), uniform(together) < np.float32(0.75))
        self.equal(self.kept(1001), uniform(words(1001)) < np.float32(0.75))

    def test_large_whole_numbers(self):
        # From a range of 2**28 on, an element takes two words.
        four = philox(SEED, np.arange(1024), 0).astype(np.uint64)
        self.equal(torch.randint(0, 2**40, (1000,), device="cuda"),
                   ((four[:, 0] << np.uint64(32)) + four[:, 1])[:1000] % np.uint64(2**40))

    def test_permutation(self):
        # By keys, of which so many bits are sorted that equal ones are rare.
        count = 1000
        four = philox(SEED, np.arange(1024), 0).astype(np.uint64)
        bits = int(np.ceil(np.log2(count - (6 * count**2 + 1) / (12 * np.log(0.9)))))
        keys = ((four[:, 0] << np.uint64(32)) + four[:, 1])[:count] % np.uint64(2**32 - 1)
        keys %= np.uint64(2**bits)
        self.assertEqual(len(np.unique(keys)), count)
        self.equal(torch.randperm(count, device="cuda"), np.argsort(keys, kind="stable"))


if __name__ == "__main__":
    unittest.main()

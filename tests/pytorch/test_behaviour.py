"""What programs see of the device beside results: figures, memory, errors, streams, graphs."""

import gc
import threading
import unittest

import torch

from against_cpu import AgainstCpu
from child import run

MIB = 1 << 20


class DeviceTest(unittest.TestCase):
    def test_figures(self):
        self.assertTrue(torch.cuda.is_available())
        self.assertEqual(torch.cuda.device_count(), 1)
        self.assertEqual(torch.cuda.get_device_name(), "Torpor Emulated GPU")
        self.assertEqual(torch.cuda.get_device_capability(), (7, 5))
        free, total = torch.cuda.mem_get_info()
        self.assertEqual(torch.cuda.get_device_properties(0).total_memory, total)
        self.assertLessEqual(free, total)

    def test_visible_devices(self):
        uuid = f"GPU-{torch.cuda.get_device_properties(0).uuid}"
        # By NVML, where PyTorch itself obeys the variable, and by CUDA, which obeys it.
        for value, count in (("", 0), ("-1", 0), ("0", 1), ("1", 0), (uuid, 1)):
            with self.subTest(value=value):
                ended = run("import torch; print(torch.cuda.device_count(), "
                            "torch._C._cuda_getDeviceCount())", CUDA_VISIBLE_DEVICES=value)
                self.assertEqual(ended.stdout.strip(), f"{count} {count}", ended.stderr)

    def test_visible_devices_that_are_chosen_late(self):
        # torch.cuda.device_count() is no first use of CUDA.
        ended = run("""import os, torch
print(torch.cuda.device_count())
os.environ["CUDA_VISIBLE_DEVICES"] = ""
print(torch._C._cuda_getDeviceCount())
""")
        self.assertEqual(ended.stdout.split(), ["1", "0"], ended.stderr)

    def test_every_call_synchronous(self):
        ended = run("""import torch
a = torch.arange(6., device="cuda").view(2, 3)
print((a @ a.t()).sum().item())
try:
    a[torch.tensor([7], device="cuda")]
except Exception as error:
    print(type(error).__name__)
""", CUDA_LAUNCH_BLOCKING="1")
        # The failing call itself raises, not the next one that waits.
        self.assertEqual(ended.stdout.split(), ["83.0", "AcceleratorError"], ended.stderr)


class MemoryTest(unittest.TestCase):
    def setUp(self):
        gc.collect()
        torch.cuda.empty_cache()

    def test_account(self):
        free, _ = torch.cuda.mem_get_info()
        allocated = torch.cuda.memory_allocated()
        x = torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")
        self.assertEqual(torch.cuda.memory_allocated() - allocated, 64 * MIB)
        self.assertEqual(torch.cuda.mem_get_info()[0], free - 64 * MIB)
        del x
        self.assertEqual(torch.cuda.memory_allocated(), allocated)
        torch.cuda.empty_cache()
        self.assertEqual(torch.cuda.mem_get_info()[0], free)
        self.assertIn("Allocated memory", torch.cuda.memory_summary())

    def test_too_much(self):
        _, total = torch.cuda.mem_get_info()
        with self.assertRaises(torch.OutOfMemoryError):
            torch.empty(total + MIB, dtype=torch.uint8, device="cuda")
        self.assertEqual((torch.ones(4, device="cuda") * 2).sum().item(), 8)

    def test_the_cache_is_freed_for_what_needs_its_memory(self):
        _, total = torch.cuda.mem_get_info()
        half = total // 2 // MIB * MIB
        first = torch.empty(half, dtype=torch.uint8, device="cuda")
        with self.assertRaises(torch.OutOfMemoryError):
            torch.empty(half + 64 * MIB, dtype=torch.uint8, device="cuda")
        del first  # stays in PyTorch's cache
        self.assertGreaterEqual(torch.cuda.memory_reserved(), half)
        retries = torch.cuda.memory_stats()["num_alloc_retries"]
        second = torch.empty(half + 64 * MIB, dtype=torch.uint8, device="cuda")
        self.assertEqual(torch.cuda.memory_stats()["num_alloc_retries"], retries + 1)
        del second

    def test_limit_of_the_process(self):
        torch.cuda.set_per_process_memory_fraction(0.01)
        try:
            with self.assertRaises(torch.OutOfMemoryError):
                torch.empty(512 * MIB, dtype=torch.uint8, device="cuda")
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0)


class ErrorTest(unittest.TestCase):
    def test_an_index_out_of_range(self):
        ended = run("""import torch
table = torch.zeros(4, 2, device="cuda")
try:
    torch.nn.functional.embedding(torch.tensor([9], device="cuda"), table).sum().item()
except RuntimeError as error:
    print("raised", "device-side assert triggered" in str(error))
try:
    torch.zeros(1, device="cuda").item()
except RuntimeError as error:
    print("still", "device-side assert triggered" in str(error))
""")
        self.assertEqual(ended.stdout.split("\n")[:2], ["raised True", "still True"], ended.stderr)
        self.assertRegex(ended.stderr, r"\.cu:\d+: .*: block: \[0,0,0\], thread: \[\d+,0,0\] "
                                       r"Assertion `.*` failed\.")

    def test_errors_of_one_process_leave_others_alone(self):
        x = torch.ones(4, device="cuda")
        self.test_an_index_out_of_range()
        self.assertEqual((x * 2).sum().item(), 8)


class MissingTest(AgainstCpu):
    """What does not work yet (docs/pytorch.md), and says so."""

    @unittest.expectedFailure  # cuFFT is NVIDIA's and finds no driver of NVIDIA's
    def test_fourier_transforms(self):
        self.check(torch.fft.fft, torch.randn(8))

    @unittest.expectedFailure  # so is cuSOLVER
    def test_linear_equations(self):
        self.check(torch.linalg.solve, torch.eye(4) * 2, torch.ones(4, 1))

    @unittest.expectedFailure  # so is cuSPARSE
    def test_sparse_matrices(self):
        self.check(lambda a, b: a.to_sparse_csr() @ b, torch.eye(4) * 2, torch.ones(4, 2))

    @unittest.expectedFailure  # needs cudaGetDriverEntryPointByVersion
    def test_segments_that_grow(self):
        ended = run("import torch; print(torch.ones(4, device='cuda').sum().item())",
                    PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")
        self.assertEqual(ended.stdout.strip(), "4.0", ended.stderr)


class StreamTest(AgainstCpu):
    def test_pinned_memory_and_copies_that_do_not_wait(self):
        source = torch.randn(1000, 100).pin_memory()
        self.assertTrue(source.is_pinned())
        there = source.to("cuda", non_blocking=True)
        back = torch.empty(1000, 100, pin_memory=True)
        back.copy_(there * 2, non_blocking=True)
        torch.cuda.synchronize()
        self.assertTrue(torch.equal(back, source * 2))

    def test_the_default_stream_is_in_order(self):
        x = torch.zeros(1000, device="cuda")
        for i in range(100):
            x += i
        self.assertEqual(x[0].item(), 4950)

    def test_streams_wait_for_each_other(self):
        streams = [torch.cuda.Stream() for _ in range(3)]
        x = torch.zeros(100_000, device="cuda")
        streams[0].wait_stream(torch.cuda.current_stream())
        for i in range(30):
            with torch.cuda.stream(streams[i % 3]):
                x += 1
                x *= 1.5 if i % 2 else 1.0
            streams[(i + 1) % 3].wait_stream(streams[i % 3])
        torch.cuda.current_stream().wait_stream(streams[0])
        expected = 0.0
        for i in range(30):
            expected = (expected + 1) * (1.5 if i % 2 else 1.0)
        self.assertAlmostEqual(x.mean().item() / expected, 1, places=5)

    def test_events(self):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        torch.ones(1000, 1000, device="cuda").sum()
        end.record()
        end.synchronize()
        self.assertTrue(end.query())
        self.assertGreaterEqual(start.elapsed_time(end), 0)

    def test_threads(self):
        weights, results = torch.randn(64, 64), {}
        inputs = [torch.randn(8, 64) for _ in range(4)]

        def work(i):
            with torch.cuda.stream(torch.cuda.Stream()):
                on_gpu = weights.cuda()
                for _ in range(10):
                    results[i] = (inputs[i].cuda() @ on_gpu).relu().cpu()

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for i in range(4):
            torch.testing.assert_close(results[i], (inputs[i] @ weights).relu(),
                                       rtol=1e-4, atol=1e-4)

    def test_host_callbacks(self):
        done = threading.Event()
        torch.ones(10, device="cuda").sum()
        torch.cuda.current_stream().synchronize()
        event = torch.cuda.Event()
        event.record()
        threading.Thread(target=lambda: (event.synchronize(), done.set())).start()
        self.assertTrue(done.wait(30))


class GraphTest(AgainstCpu):
    def test_capture_and_replay(self):
        layer = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(),
                                    torch.nn.Linear(32, 4))
        inputs = [torch.randn(8, 16) for _ in range(3)]
        with torch.no_grad():
            expected = [layer(x) for x in inputs]
            layer.cuda()
            static = torch.zeros(8, 16, device="cuda")
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                layer(static)
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                out = layer(static)
            for x, y in zip(inputs, expected):
                static.copy_(x)
                graph.replay()
                self.compare(out, y)

    def test_random_numbers_in_graphs(self):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            x = torch.rand(1000, device="cuda")
        torch.cuda.manual_seed(5)
        graph.replay()
        first = x.clone()
        graph.replay()
        second = x.clone()
        torch.cuda.manual_seed(5)
        self.assertTrue(torch.equal(first, torch.rand(1000, device="cuda")))
        self.assertTrue(torch.equal(second, torch.rand(1000, device="cuda")))


class ProfilerTest(unittest.TestCase):
    def test_profiling_does_no_harm(self):
        both = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
        for activities in (both[:1], both):
            with self.subTest(activities=activities):
                with torch.profiler.profile(activities=activities) as profile:
                    result = (torch.ones(4, device="cuda") * 2).sum().item()
                self.assertEqual(result, 8)
                self.assertIn("aten::mul", profile.key_averages().table())

    def test_ranges_do_no_harm(self):
        with torch.cuda.nvtx.range("work"):
            self.assertEqual(torch.ones(4, device="cuda").sum().item(), 4)


if __name__ == "__main__":
    unittest.main()

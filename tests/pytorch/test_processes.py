"""Programs of several processes."""

import multiprocessing
import unittest

import torch

from child import run


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, i):
        return torch.full((3,), float(i * i))


def double(inbox, outbox):
    """A spawned process: doubles what it is sent, on the GPU."""
    outbox.put((inbox.get().cuda() * 2).tolist())


def fill(tensor):
    """A spawned process: writes to the parent's device memory."""
    tensor.fill_(7)
    torch.cuda.synchronize()


def in_child(outbox):
    """A forked process: what the GPU says there."""
    try:
        torch.ones(1, device="cuda")
        outbox.put("worked")
    except RuntimeError as error:
        outbox.put(str(error))


class ProcessTest(unittest.TestCase):
    def test_spawned_processes(self):
        context = torch.multiprocessing.get_context("spawn")
        inbox, outbox = context.Queue(), context.Queue()
        children = [context.Process(target=double, args=(inbox, outbox)) for _ in range(2)]
        for child in children:
            child.start()
        inputs = [torch.arange(4.), torch.arange(4.) + 10]
        for x in inputs:
            inbox.put(x)
        results = sorted(outbox.get(timeout=60) for _ in inputs)
        for child in children:
            child.join(60)
        for actual, x in zip(results, inputs):
            self.assertEqual(actual, (x * 2).tolist())

    def test_device_memory_is_shared_with_spawned_processes(self):
        x = torch.zeros(1000, device="cuda")
        child = torch.multiprocessing.get_context("spawn").Process(target=fill, args=(x,))
        child.start()
        child.join(60)
        self.assertEqual(child.exitcode, 0)
        self.assertTrue(torch.equal(x.cpu(), torch.full((1000,), 7.0)))

    def test_workers_that_fork(self):
        before = torch.ones(4, device="cuda")
        loader = torch.utils.data.DataLoader(Squares(), batch_size=4, num_workers=2,
                                             pin_memory=True)
        rows = [batch.to("cuda", non_blocking=True)[:, 0].cpu() for batch in loader]
        self.assertEqual(torch.cat(rows).tolist(), [i * i for i in range(12)])
        self.assertEqual(before.sum().item(), 4)

    def test_a_forked_child_is_refused_and_the_parent_goes_on(self):
        x = torch.ones(4, device="cuda")
        context = multiprocessing.get_context("fork")
        outbox = context.Queue()
        child = context.Process(target=in_child, args=(outbox,))
        child.start()
        self.assertIn("Cannot re-initialize CUDA in forked subprocess", outbox.get(timeout=60))
        child.join(60)
        self.assertEqual((x * 2).sum().item(), 8)

    def test_a_forked_child_of_a_process_that_only_counted_devices(self):
        ended = run("""import multiprocessing, torch
def work(outbox):
    outbox.put((torch.ones(4, device="cuda") * 2).sum().item())
print(torch.cuda.is_available(), torch.cuda.device_count())
context = multiprocessing.get_context("fork")
outbox = context.Queue()
child = context.Process(target=work, args=(outbox,))
child.start()
print(outbox.get(timeout=60))
child.join(60)
""", PYTORCH_NVML_BASED_CUDA_CHECK="1")
        self.assertEqual(ended.stdout.split(), ["True", "1", "8.0"], ended.stderr)

    def test_a_program_that_ends_without_cleaning_up(self):
        ended = run("import os, torch; x = torch.ones(4, device='cuda') * 2; "
                    "print(x.sum().item(), flush=True); os._exit(3)")
        self.assertEqual((ended.returncode, ended.stdout.strip()), (3, "8.0"), ended.stderr)


if __name__ == "__main__":
    unittest.main()

"""The emulated nodes of a rehearsal: an H200 as strict and as costly as the real one, and broken."""

TIME_SCALE = 20

GPU = ("{{name: NVIDIA H200, memory: 140GiB, compute_capability: {capability}, "
       "multiprocessors: 132, pcie_gbps: 55, pageable_gbps: 6, copy_us: 8, count: {count}}}")
COSTS = """costs:
  vmm_us: {create: 29, map: 2, set_access: 38, unmap: 34, export: 20, import: 60}
  pin_ms_per_gib: 100
  launch_us: 2.3
  copy_call_us: 2
  module_ms: 0.5
  context_memory: 550MiB
  cublas_memory: 32MiB
"""
STRICT = ("host_registrations: true, addresses: {addresses}, hidden_faults: true, "
          "memory_overheads: true, log_failures: true, costs: true, launch_queues: true")


def h200(gpus=1, capability="9.0", addresses="honoured", faults="", links=0):
    """The text of deploy/topologies/h200-1gpu.yaml, changed as the arguments say."""
    text = ["version: v1", f"time_scale: {TIME_SCALE}",
            "gpus: [" + GPU.format(capability=capability, count=gpus) + "]",
            "strict: {" + STRICT.format(addresses=addresses) + "}", COSTS]
    if links:
        text.append(f"nvlinks: {{gbps_per_link: 25, pairs: [{{gpus: [0, 1], links: {links}}}]}}")
    if faults:
        text.append(f"faults: {{{faults}}}")
    return "\n".join(text) + "\n"

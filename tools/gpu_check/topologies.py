"""The emulated nodes of a rehearsal: the preset h200-1gpu, and the same with something broken."""

import re

# `strict: true`, point by point, so that one can be another.
STRICT = ("strict: {{host_registrations: true, addresses: {}, hidden_faults: true, "
          "memory_overheads: true, log_failures: true, costs: true, launch_queues: true}}")


def time_scale(preset):
    """Real seconds in which a modelled one passes."""
    return float(re.search(r"^time_scale: (\S+)", preset, re.M)[1])


def _replace(text, pattern, replacement):
    changed, count = re.subn(pattern, replacement, text, count=1, flags=re.M)
    if count != 1:
        raise ValueError(f"the topology of the H200 has no {pattern}")
    return changed


def changed(preset, gpus=1, capability=None, addresses=None, faults=None, links=0):
    """The preset's text with so many GPUs, joined by so many NVLinks, and so on."""
    text = preset
    if gpus > 1:
        text = _replace(text, r"(pcie_gbps: )", rf"count: {gpus}, \1")
    if capability:
        text = _replace(text, r"compute_capability: [\d.]+", f"compute_capability: {capability}")
    if addresses:
        text = _replace(text, r"^strict: true$", STRICT.format(addresses))
    if links:
        text += f"nvlinks: {{gbps_per_link: 25, pairs: [{{gpus: [0, 1], links: {links}}}]}}\n"
    if faults:
        text += f"faults: {{{faults}}}\n"
    return text

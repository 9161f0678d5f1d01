"""What the driver API's headers say beside prototypes: names of errors, versions of functions."""

import collections
import re


def error_names(include):
    """(code, name) of every CUresult."""
    with open(include / "cuda.h", encoding="utf-8") as header:
        text = header.read()
    body = re.search(r"typedef enum cudaError_enum \{(.*?)\} CUresult;", text, re.S).group(1)
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    return [(int(code), name) for name, code in re.findall(r"(CUDA_\w+)\s*=\s*(\d+)", body)]


def introduced_versions(include):
    """Base name -> the CUDA versions that brought a new form of it, ascending."""
    with open(include / "cudaTypedefs.h", encoding="utf-8") as header:
        found = re.findall(r"\*PFN_(cu\w+?)_v(\d+)\)\s*\(", header.read())
    versions = collections.defaultdict(set)
    for name, version in found:
        versions[name].add(int(version))
    return {name: sorted(found) for name, found in versions.items()}


def forms_by_version(functions, include):
    """(base name, CUDA version, function, its per-thread variant or None), ordered."""
    for name, versions in sorted(introduced_versions(include).items()):
        forms = [form for form in [name] + [f"{name}_v{i}" for i in range(2, 9)]
                 if form in functions]
        # The n-th form came with the n-th version, counted from the latest.
        pairs = list(zip(reversed(versions), reversed(forms)))
        for version, form in reversed(pairs):
            per_thread = next((form + suffix for suffix in ("_ptsz", "_ptds")
                               if form + suffix in functions), None)
            yield name, version, form, per_thread

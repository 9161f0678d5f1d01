"""Emits the client's libcudart: what overrides must define, the generated entries, the exports."""

from surface import Answer, stream_parameter

_BANNER = "// Generated from proto/cuda_api/cudart.py by generator.py. Do not edit.\n"

_OVERRIDES = _BANNER + """\
#pragma once

#include <cuda_runtime_api.h>

// The entry points that client_shim/cudart/ defines, exported by these declarations.
#pragma GCC visibility push(default)
extern "C" {{
{prototypes}
}}
#pragma GCC visibility pop

namespace torpor::shim {{

// Hand-written, for the generated entries: what cudaGetLastError will tell this thread.
// Returns `error`.
cudaError_t RecordError(cudaError_t error);

}}  // namespace torpor::shim
"""

_ENTRIES = _BANNER + """\
#include "client_shim/cudart/overrides.h"

namespace {{

// Stream 0 of a program that was compiled with --default-stream per-thread.
cudaStream_t PerThread(cudaStream_t stream) {{ return stream ? stream : cudaStreamPerThread; }}

cudaError_t NullArgument() {{ return torpor::shim::RecordError(cudaErrorInvalidValue); }}

}}  // namespace

#pragma GCC visibility push(default)
extern "C" {{
{entries}
}}
#pragma GCC visibility pop
"""


def overrides_header(exports):
    return _OVERRIDES.format(prototypes="\n".join(
        e.prototype.declaration() + ";" for e in exports if e.answer is Answer.CUSTOM))


def entries_source(exports):
    emit = {Answer.LOCAL: _local, Answer.VARIANT: _variant}
    return _ENTRIES.format(entries="\n".join(
        emit[e.answer](e) for e in exports if e.answer in emit))


def _local(export):
    outputs = export.line.outputs
    parameters = ", ".join(f"{p.type} {p.name}" if p.name in outputs else p.type
                           for p in export.prototype.parameters)
    lines = [f"{export.prototype.result} {export.name}({parameters}) {{"]
    lines += [f"  if (!{name}) return NullArgument();" for name in outputs]
    lines += [f"  *{name} = {value};" for name, value in outputs.items()]
    return "\n".join(lines + ["  return cudaSuccess;", "}"])


def _variant(export):
    stream = stream_parameter(export.prototype)
    call = export.prototype.call({stream: f"PerThread({stream})"} if stream else {})
    return f"{export.prototype.declaration(export.name)} {{\n  return {call};\n}}"

"""Emits the client's libcudart: what overrides must define, and the generated entries."""

import emit_exports
from surface import Answer, stream_parameter

_DECLARATIONS = """
namespace torpor::shim {

// Hand-written, for the generated entries: notes the thread's result for cudaGetLastError.
// Returns `error`.
cudaError_t RecordError(cudaError_t error);

}  // namespace torpor::shim
"""

_PREAMBLE = """\
#include "client_shim/cudart/overrides.h"

// Old programs import what the headers call deprecated.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace {

// Stream 0 of a program that was compiled with --default-stream per-thread.
cudaStream_t PerThread(cudaStream_t stream) { return stream ? stream : cudaStreamPerThread; }

cudaError_t NullArgument() { return torpor::shim::RecordError(cudaErrorInvalidValue); }

}  // namespace
"""


def overrides_header(library, exports):
    return emit_exports.overrides_header(library, exports, _DECLARATIONS)


def entries_source(library, exports):
    variants = [_variant(e) for e in exports if e.answer is Answer.VARIANT]
    return emit_exports.entries_source(
        library, _PREAMBLE, emit_exports.local_entries(library, exports) + variants)


def _variant(export):
    stream = stream_parameter(export.prototype)
    call = export.prototype.call({stream: f"PerThread({stream})"} if stream else {})
    return f"{export.prototype.declaration(export.name)} {{\n  return {call};\n}}"


_RUNTIME_FUNCTIONS = """\
// Generated from proto/cuda_api/{table}.py by generator.py. Do not edit.
#pragma once

#include "client_shim/cudart/overrides.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
namespace torpor::shim {{

// The supported functions of the runtime, for the libraries on top.
struct RuntimeFunctions {{
{members}
}};
inline constexpr RuntimeFunctions kRuntimeFunctions = {{
{values}
}};

}}  // namespace torpor::shim
#pragma GCC diagnostic pop
"""


def runtime_functions_header(library, exports):
    names = [e.name for e in exports
             if e.answer in (Answer.CUSTOM, Answer.LOCAL) and not e.line.signature]
    return _RUNTIME_FUNCTIONS.format(
        table=library.name,
        members="\n".join(f"  decltype(&::{name}) {name};" for name in names),
        values="\n".join(f"    &::{name}," for name in names))

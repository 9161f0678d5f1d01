"""Emits the client's libcuda: an entry a translated symbol, and the tables of names."""

import re

import driver_headers
import emit_exports
from surface import Answer, stream_parameter
from vocabulary import How

_PREAMBLE = """\
// All forms of every function are declared, each by the name that is exported.
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cudaProfiler.h>

#include "client_shim/cuda/calls.h"

// NOLINTNEXTLINE(google-build-using-namespace): what the table's expressions name
using namespace torpor::shim;
"""

_TABLES = """\
// Generated from cuda.h and cudaTypedefs.h by generator.py. Do not edit.
#include "client_shim/cuda/driver_tables.h"

extern "C" {{
{declarations}
}}

namespace torpor::shim {{
namespace {{

constexpr DriverErrorName kErrorNames[] = {{
{errors}
}};

const DriverFunction kFunctions[] = {{
{functions}
}};

}}  // namespace

std::span<const DriverErrorName> DriverErrorNames() {{ return kErrorNames; }}
std::span<const DriverFunction> DriverFunctions() {{ return kFunctions; }}

}}  // namespace torpor::shim
"""


def overrides_header(library, exports):
    return emit_exports.overrides_header(library, exports)


def entries_source(library, exports):
    return emit_exports.entries_source(
        library, _PREAMBLE, [_entry(e) for e in exports if e.answer is Answer.TRANSLATED])


def _entry(export):
    if export.line.how is not How.TRANSLATED:
        raise ValueError(f"{export.name}: every symbol of this library is translated")
    per_thread = export.name.endswith(("_ptsz", "_ptds"))
    default_stream = "cudaStreamPerThread" if per_thread else "cudaStreamLegacy"
    expression = export.line.value.replace("{ptds}", "_ptds" if per_thread else "")
    expression = expression.replace("{stream}", default_stream)
    stream = stream_parameter(export.prototype)
    if per_thread and stream:
        expression = re.sub(rf"\b{stream}\b", f"PerThread({stream})", expression)
    expression = re.sub(r"\b(cuda[A-Z]\w*)\(", r"Runtime().\1(", expression)
    return emit_exports.translated_entry(export, expression)


def tables_source(exports, include):
    names = {e.name for e in exports}
    forms = list(driver_headers.forms_by_version(names, include))
    mentioned = sorted({f for _, _, *functions in forms for f in functions if f})

    def address(function):
        return f"reinterpret_cast<void*>(&{function})" if function else "nullptr"

    return _TABLES.format(
        declarations="\n".join(f"int {name}();" for name in mentioned),
        errors="\n".join(f'    {{{code}, "{name}"}},'
                         for code, name in driver_headers.error_names(include)),
        functions="\n".join(f'    {{"{name}", {version}, {address(form)}, {address(per_thread)}}},'
                            for name, version, form, per_thread in forms))

"""Emits the server's side of cuDNN: the function table, and from each command to its call."""

import emit_functions
from emit_checks import bind_fields
from vocabulary import (
    Access, Bytes, Descriptor, DevicePtr, HostScalar, SizeAnswer, StreamHandle, Value,
    call_commands)

INCLUDES = """\
#include "nvidia/cudnn/shapes.h"
#include "proto/cuda_api/cudnn_arguments.h"
#include "proto/cuda_api/cudnn_checks.h"
#include "proto/cuda_api/device_arguments.h"
#include "proto/cuda_api/refusals.h"
"""


def functions_header(library):
    return emit_functions.functions_header(
        library, "cudnn.h", "cuDNN", lambda symbol: f"decltype(&::{symbol}) {symbol}")


def invoke_functions(library):
    primary = ("\nnamespace {\n\n"
               "template <typename Command>\n"
               "CallStatus Invoke(CudnnHandler& handler, const Command& command);\n"
               "template <typename Command, typename Result>\n"
               "CallStatus Invoke(CudnnHandler& handler, const Command& command,"
               " Result& result);\n\n")
    return primary + "\n".join(map(_invoke, library.calls)) + "\n}  // namespace\n"


def _invoke(call):
    command, = call_commands(call)
    name = f"wire::{command.name}"
    answers = command.result is not None
    specialised = f"{name}, {name}Result" if answers else name
    result = f", {name}Result& answer" if answers else ""
    lines = ["template <>",
             f"CallStatus Invoke<{specialised}>(CudnnHandler& handler,"
             f" const {name}& command{result}) {{",
             f'  constexpr char kSymbol[] = "{call.symbol}";',
             "  if (!FieldsAreValid(command))"
             " return InvalidArguments(CUDNN_STATUS_BAD_PARAM, kSymbol);",
             f"  {bind_fields(command)}"]
    memory = {n: w for n, w in call.parameters.items() if isinstance(w, DevicePtr)}
    lines += [f"  const DeviceArgument {n}_argument(handler, {n}, {_extent(n, w)},"
              f" Access::{w.access.value});" for n, w in memory.items()]
    if memory:
        checked = " && ".join(f"{n}_argument.ok()" for n in memory)
        lines.append(f"  if (!({checked})) return ForeignMemory(CUDNN_STATUS_BAD_PARAM, kSymbol);")
    lines += [f"  const HostScalarArgument {n}_argument({n});"
              for n, w in call.parameters.items() if isinstance(w, HostScalar)]
    function = f"handler.functions().{call.symbol}"
    lines.append(f"  CudnnInvocation invocation(handler, kSymbol, {function} != nullptr, stream);")
    lines += [f"  const auto {n}_real = invocation.Real({n});"
              for n, w in call.parameters.items() if isinstance(w, Descriptor)]
    passed = ", ".join(_argument(n, w) for n, w in call.parameters.items())
    lines.append("  if (!invocation.ok()) return invocation.refusal();")
    if answers:
        lines += ["  std::size_t bytes = 0;",
                  f"  const CallStatus outcome = invocation.Done({function}({passed}));",
                  "  answer.bytes = bytes;", "  return outcome;"]
    else:
        lines.append(f"  return invocation.Done({function}({passed}));")
    return "\n".join(lines) + "\n}\n"


def _extent(name, word):
    what = word.what
    extent = what.count if isinstance(what, Bytes) else f"DnnBytes({what.descriptor})"
    return f"{name} == 0 ? 0 : {extent}" if word.may_be_null else extent


def _argument(name, word):
    if isinstance(word, StreamHandle):
        return "invocation.handle()"
    if isinstance(word, Descriptor):
        return f"{name}_real"
    if isinstance(word, Value):
        return f"static_cast<{word.c_type}>({name})"
    if isinstance(word, HostScalar):
        return f"{name}_argument.get()"
    if isinstance(word, SizeAnswer):
        return "&bytes"
    const = "const " if word.access is Access.READ else ""
    return f"{name}_argument.as<{const}void>()"

"""Emits the client's libcudnn: constants, and the generated entries of the calls."""

import emit_exports
from surface import Answer
from vocabulary import (
    Descriptor, DevicePtr, HostScalar, SizeAnswer, StreamHandle, Value, call_commands)

_PREAMBLE = """\
#include "client_shim/cudnn/cudnn_call.h"
#include "proto/cuda_api/cudnn_checks.h"

using torpor::DnnScalarBytes;
using torpor::DnnTypeBytes;
using torpor::shim::CudnnCall;
"""


def overrides_header(library, exports):
    return emit_exports.overrides_header(library, exports)


def entries_source(library, exports):
    entries = [_entry(e) for e in exports if e.answer is Answer.REMOTED]
    return emit_exports.entries_source(
        library, emit_exports.includes(library) + "\n\n" + _PREAMBLE,
        emit_exports.local_entries(library, exports) + entries)


def _entry(export):
    call = export.line
    command, = call_commands(call)
    handle = next(n for n, w in call.parameters.items() if isinstance(w, StreamHandle))
    lines = [f"{export.prototype.declaration()} {{", f"  CudnnCall call({handle});",
             f"  torpor::wire::{command.name} command;", "  call.Stream(command.stream);"]
    # Scalars are as long as a descriptor says.
    parameters = sorted(call.parameters.items(), key=lambda item: isinstance(item[1], HostScalar))
    lines += [f"  call.{_put(word, name)};" for name, word in parameters
              if not isinstance(word, (StreamHandle, SizeAnswer))]
    answer = next((n for n, w in call.parameters.items() if isinstance(w, SizeAnswer)), None)
    if answer is None:
        lines.append("  return call.Send(command);")
    else:
        lines.append(f"  return call.AskSize<torpor::wire::{command.name}Result>(command,"
                     f" {answer});")
    return "\n".join(lines + ["}"])


def _put(word, name):
    field = f"command.{name}"
    if isinstance(word, Descriptor):
        return f"Descriptor({field}, {name})"
    if isinstance(word, Value):
        return f"Value({field}, {name})"
    if isinstance(word, DevicePtr):
        return f"Address({field}, {name})"
    if isinstance(word, HostScalar):
        return f"Scalar({field}, {name}, {word.bytes}(command.{word.descriptor}.type))"
    raise TypeError(f"{name}: {word}")

"""Emits the client's libcublas: what is hand-written, and the generated entries of the calls."""

import re

import emit_exports
from surface import Answer
from vocabulary import (
    DevicePtr, Handle, Matrix, ParameterInfo, Scalar, ScalarResult, Value, call_commands)

_PREAMBLE = """\
#include <cublas_api.h>

#include <algorithm>

#include "client_shim/cublas/cublas_call.h"
#include "client_shim/cublas/rotations.h"
#include "proto/cuda_api/blas_extents.h"
#include "proto/cuda_api/cublas_checks.h"

using torpor::shim::CublasCall;
using torpor::wire::DataTypeBytes;
using torpor::wire::Oriented;
using torpor::wire::ScalarBytes;
"""


def overrides_header(library, exports):
    return emit_exports.overrides_header(library, exports)


def entries_source(library, exports):
    return emit_exports.entries_source(library, _PREAMBLE, (
        _entry(e) for e in exports if e.answer is Answer.REMOTED))


def _entry(export):
    call = export.line
    handle = next(n for n, w in call.parameters.items() if isinstance(w, Handle))
    lines = [f"{export.prototype.declaration()} {{", f"  CublasCall call({handle});"]
    lines += [f"  call.Info({name});" for name, word in call.parameters.items()
              if isinstance(word, ParameterInfo)]
    if call.host_function:
        arguments = ", ".join(n for n in call.parameters if n != handle)
        lines += ["  if (call.result_goes_to_host())",
                  f"    return torpor::shim::{call.host_function}({arguments});"]
    stream, *to_host = call_commands(call)
    for command in to_host:
        lines += ["  if (call.result_goes_to_host()) {"]
        lines += ["  " + line for line in _send(call, command)]
        lines += ["  }"]
    lines += _send(call, stream)
    return "\n".join(lines + ["}"])


def _send(call, command):
    lines = [f"  torpor::wire::{command.name} command;"]
    values = [n for n in command.fields if isinstance(call.parameters[n], Value)]
    others = [n for n in command.fields if n not in values]
    lines += [f"  call.{_put(call.parameters[name], name)};" for name in values]
    lines += _refusals(call, command)
    lines += [f"  call.{_put(call.parameters[name], name)};" for name in others]
    if command.result is None:
        return lines + ["  return call.Send(command);"]
    result, = command.result
    element = call.parameters[result].element
    ask = (f"AskBytes(command, answer, answer.{result}, {result}, {element.bytes})"
           if element.c_type == "void" else
           f"Ask<{element.c_type}>(command, answer, answer.{result}, {result})")
    return lines + [f"  torpor::wire::{command.name}Result answer;", f"  return call.{ask};"]


def _refusals(call, command):
    """What cuBLAS says about wrong sizes of a plain product; of other routines it is not known."""
    product = re.fullmatch(r"cublas([SDCZ])gemm_v2", call.symbol)
    if product is None:
        return
    numbers = {name: i for i, name in enumerate(call.parameters)}  # the handle is 0
    leading = {word.what.leading: word.what.rows for word in call.parameters.values()
               if isinstance(word, DevicePtr) and isinstance(word.what, Matrix)}
    for name, number in numbers.items():
        if name in ("m", "n", "k"):
            wrong = f"command.{name} < 0"
        elif name in leading:
            rows = re.sub(r"\b(trans[ab]|[mnk])\b", r"command.\1", leading[name])
            wrong = f"command.{name} < std::max(1, {rows})"
        else:
            continue
        yield f'  call.RefuseIf({wrong}, "{product[1]}GEMM", {number});'


def _put(word, name):
    field = f"command.{name}"
    if isinstance(word, Handle):
        return f"Handle({field})"
    if isinstance(word, Value):
        return f"Value({field}, {name})"
    if isinstance(word, DevicePtr):
        return f"Address({field}, {name})"
    if isinstance(word, Scalar):
        return f"Scalar({field}, {name}, {word.element.bytes})"
    if isinstance(word, ScalarResult):
        if word.element.c_type == "void":
            return f"Address({field}, {name})"
        return f"DeviceResult<{word.element.c_type}>({field}, {name})"
    raise TypeError(f"{name}: {word}")

"""Emits, for client and server, whether the fields of a call's command make sense."""

from vocabulary import Descriptor, DevicePtr, Matrix, Scalar, ScalarResult, Value, call_commands

_HEADER = """\
// Generated from proto/cuda_api/{table}.py by generator.py. Do not edit.
#pragma once

#include "{checks}"
#include "proto/cuda_api/{table}_commands.h"

namespace torpor::wire {{

// Whether the function accepts a command's enumerations, sizes and strides. Does not check the
// ownership of handles and memory.
{functions}
}}  // namespace torpor::wire
"""


def checks_header(library):
    functions = [_function(call, command) for call in library.calls
                 for command in call_commands(call)]
    return _HEADER.format(table=library.name, checks=library.check_header, functions="\n".join(functions))


def bind_fields(command):
    """Gives the command's fields the names that the table's expressions use."""
    return f"[[maybe_unused]] const auto& [{', '.join(command.fields)}] = command;"


def host_scalars_agree(call):
    """All scalars of a call are in the memory that one pointer mode names."""
    scalars = [n for n, w in call.parameters.items() if isinstance(w, Scalar)]
    return [f"({first}.address == 0) == ({other}.address == 0)"
            for first, other in zip(scalars, scalars[1:])]


def _function(call, command):
    conditions = ["true"] + host_scalars_agree(call)
    for name, word in call.parameters.items():
        if isinstance(word, Value) and word.valid:
            conditions.append(f"{word.valid}({name})")
        if isinstance(word, Descriptor):
            conditions.append(f"DnnIsValid({name})")
        if isinstance(word, ScalarResult) and name in command.fields:
            conditions.append(f"{name} != 0")
    for word in call.parameters.values():
        if isinstance(word, DevicePtr) and isinstance(word.what, Matrix):
            conditions += _matrix(word.what)
    unique = list(dict.fromkeys(conditions[1:])) or conditions
    joined = " &&\n         ".join(unique)
    return (f"inline bool FieldsAreValid(const {command.name}& command) {{\n"
            f"  {bind_fields(command)}\n  return {joined};\n}}\n")


def _matrix(matrix):
    yield f"MatrixIsValid({matrix.rows}, {matrix.columns}, {matrix.leading})"
    if matrix.count:
        yield f"BatchIsValid({matrix.stride}, {matrix.count})"

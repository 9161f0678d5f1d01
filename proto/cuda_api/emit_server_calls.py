"""Emits the server's side of cuBLAS: the function table, and from each command to its call."""

import emit_functions
from emit_checks import bind_fields
from vocabulary import (
    Access, DevicePtr, Handle, Matrix, Packed, ParameterInfo, Pointers, Scalar, ScalarResult, Value,
    call_commands)

INCLUDES = """\
#include "proto/cuda_api/blas_extents.h"
#include "proto/cuda_api/cublas_arguments.h"
#include "proto/cuda_api/cublas_checks.h"
#include "proto/cuda_api/device_arguments.h"
#include "proto/cuda_api/refusals.h"
"""


def functions_header(library):
    calls = {call.symbol: call for call in library.calls}

    # Spelled out for calls: cublas_api.h overloads some of their names.
    def type_of(symbol):
        if symbol not in calls:
            return f"decltype(&::{symbol}) {symbol}"
        return f"cublasStatus_t (*{symbol})({_parameter_types(calls[symbol])})"

    return emit_functions.functions_header(library, "cublas_api.h", "cuBLAS", type_of)


def _parameter_types(call):
    return ", ".join(_parameter_type(word) for word in call.parameters.values())


def _parameter_type(word):
    if isinstance(word, Handle):
        return "cublasHandle_t"
    if isinstance(word, Value):
        return word.c_type
    if isinstance(word, Scalar):
        return f"const {word.element.c_type}*"
    if isinstance(word, ScalarResult):
        return ("const " if word.access is Access.READ else "") + f"{word.element.c_type}*"
    if isinstance(word, ParameterInfo):
        return "int*"
    const = "const " if word.access is Access.READ else ""
    return f"{const}{_pointee(word.what)}*"


def _pointee(what):
    """What a DevicePtr points to, where it is written."""
    return what.element.c_type + ("* const" if isinstance(what, Pointers) else "")


def invoke_functions(library):
    names = ("AtLeastOne", "BandRows", "BatchBytes", "DataTypeBytes", "Magnitude", "MatrixBytes",
             "Oriented", "PackedBytes", "ScalarBytes", "Sided", "VectorBytes")
    primary = ("\nnamespace {\n\n"
               + "".join(f"using wire::{name};\n" for name in names) + "\n"
               "template <typename Command>\n"
               "CallStatus Invoke(CublasHandler& handler, const Command& command);\n"
               "template <typename Command, typename Result>\n"
               "CallStatus Invoke(CublasHandler& handler, const Command& command,"
               " Result& result);\n\n")
    functions = [_invoke(call, command) for call in library.calls
                 for command in call_commands(call)]
    return primary + "\n".join(functions) + "\n}  // namespace\n"


def _invoke(call, command):
    to_host = command.result is not None
    name = f"wire::{command.name}"
    result = f", {name}Result& answer" if to_host else ""
    specialised = f"{name}, {name}Result" if to_host else name
    lines = ["template <>",
             f"CallStatus Invoke<{specialised}>(CublasHandler& handler,"
             f" const {name}& command{result}) {{",
             f'  constexpr char kSymbol[] = "{call.symbol}";',
             "  if (!FieldsAreValid(command)) return InvalidArguments(CUBLAS_STATUS_INVALID_VALUE, kSymbol);",
             f"  {bind_fields(command)}"]
    if any(isinstance(w, DevicePtr) and isinstance(w.what, Pointers)
           for w in call.parameters.values()):
        lines.append("  if (handler.is_translating()) return AddressesInMemory(CUBLAS_STATUS_NOT_SUPPORTED, kSymbol);")
    arguments = [_declare(n, w, to_host) for n, w in call.parameters.items()]
    declarations = [d for d, _ in arguments if d]
    lines += declarations
    checked = [f"{n}_argument.ok()" for n, w in call.parameters.items()
               if isinstance(w, (Scalar, DevicePtr)) or (isinstance(w, ScalarResult)
                                                         and not to_host)]
    if checked:
        lines.append(f"  if (!({' && '.join(checked)})) return ForeignMemory(CUBLAS_STATUS_INVALID_VALUE, kSymbol);")
    passed = ", ".join(a for _, a in arguments)
    handle = next(n for n, w in call.parameters.items() if isinstance(w, Handle))
    function = f"handler.functions().{call.symbol}"
    lines += [f"  CublasInvocation invocation(handler, kSymbol, {function} != nullptr,"
              f" {handle}, {_mode(call, to_host)});",
              "  if (!invocation.ok()) return invocation.refusal();",
              f"  {'const CallStatus outcome =' if to_host else 'return'}"
              f" invocation.Done({function}({passed}));"]
    if to_host:
        lines += [f"  answer.{n} = {n}_argument.value();" for n in command.result]
        lines.append("  return outcome;")
    return "\n".join(lines) + "\n}\n"


def _declare(name, word, to_host):
    """How the argument is made, and what is passed for it."""
    if isinstance(word, Handle):
        return "", "invocation.handle()"
    if isinstance(word, Value):
        return "", f"static_cast<{word.c_type}>({name})"
    if isinstance(word, Scalar):
        return (f"  const ScalarArgument {name}_argument(handler, {name}, {word.element.bytes});",
                f"{name}_argument.as<{word.element.c_type}>()")
    if isinstance(word, ParameterInfo):
        return f"  int {name}_argument = 0;", f"&{name}_argument"
    if isinstance(word, ScalarResult) and to_host:
        return f"  HostResult {name}_argument;", f"{name}_argument.as<{word.element.c_type}>()"
    if isinstance(word, ScalarResult):
        extent, access, pointee = word.element.bytes, word.access, word.element.c_type
    else:
        extent, access, pointee = _extent(name, word), word.access, _pointee(word.what)
    const = "const " if access is Access.READ else ""
    return (f"  const DeviceArgument {name}_argument(handler, {name}, {extent},"
            f" Access::{access.value});", f"{name}_argument.as<{const}{pointee}>()")


def _extent(name, word):
    what = word.what
    bytes_ = what.element.bytes
    if isinstance(what, Pointers):
        extent = f"VectorBytes(sizeof(std::uint64_t), {what.count}, 1)"
    elif isinstance(what, Packed):
        extent = f"PackedBytes({bytes_}, {what.n})"
    elif not isinstance(what, Matrix):
        extent = f"VectorBytes({bytes_}, {what.n}, {what.increment})"
    elif what.count:
        extent = (f"BatchBytes({bytes_}, {what.rows}, {what.columns}, {what.leading},"
                  f" {what.stride}, {what.count})")
    else:
        extent = f"MatrixBytes({bytes_}, {what.rows}, {what.columns}, {what.leading})"
    return f"{name} == 0 ? 0 : {extent}" if word.may_be_null else extent


def _mode(call, to_host):
    if to_host:
        return "CUBLAS_POINTER_MODE_HOST"
    for name, word in call.parameters.items():
        if isinstance(word, Scalar):
            return f"ModeOf({name}.address)"
        if isinstance(word, ScalarResult):
            return "CUBLAS_POINTER_MODE_DEVICE"
    return "CUBLAS_POINTER_MODE_HOST"

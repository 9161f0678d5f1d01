"""Emits the wire structs: one struct a command, and a Result for those that are answered."""

HEADER = """\
// Generated from proto/cuda_api/{table}.py by generator.py. Do not edit.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

{includes}#include "proto/wire/codec.h"
#include "proto/wire/session_window.h"

namespace torpor::wire {{
"""


def wire_header(library):
    includes = "".join(f'#include "{header}"\n' for header in library.wire_headers)
    parts = [HEADER.format(table=library.name, includes=includes)]
    for constant in library.constants:
        parts.append(f"// {constant.note}\ninline constexpr {constant.type.command} "
                     f"{constant.name} = {constant.value};\n")
    parts += [enumeration(e) for e in library.enumerations]
    parts += [structure(s.name, s.note, s.fields, in_result=True) for s in library.structs]
    for command in library.wire_commands:
        parts.append(structure(command.name, command.note, command.fields, call_id=command.id,
                               sync=command.result is not None))
        if command.result is not None:
            parts.append(structure(command.name + "Result", "", command.result, in_result=True))
    names = [c.name for c in library.wire_commands]
    results = [c.name + "Result" for c in library.wire_commands if c.result is not None]
    parts += [type_list(f"Every{library.prefix}Command", names),
              type_list(f"Every{library.prefix}Result", results)]
    parts.append("}  // namespace torpor::wire\n")
    return "\n".join(parts)


def type_list(name, types):
    return (f"// For what must see them all.\ntemplate <template <typename...> typename List>\n"
            f"using {name} = List<{', '.join(types)}>;\n")


def enumeration(e):
    values = "".join(f"  {name} = {i},  // {note}\n" for i, (name, note)
                     in enumerate(e.values.items()))
    return f"// {e.note}\nenum class {e.name} : std::uint32_t {{\n{values}}};\n"


def structure(name, note, fields, call_id=None, sync=False, in_result=False):
    lines = [f"// {note}"] if note else []
    lines.append(f"struct {name} {{")
    if call_id is not None:
        lines.append(f"  static constexpr std::uint32_t kCallId = {call_id};")
        lines.append(f"  static constexpr bool kSync = {'true' if sync else 'false'};")
    for field, type_ in fields.items():
        cpp = type_.in_result if in_result else type_.command
        lines.append(f"  {cpp} {field}{getattr(type_, 'initial', '')};")
    visits = ", ".join(f"v({field})" for field in fields)
    lines.append("  template <typename V>")
    lines.append(f"  void Visit([[maybe_unused]] V& v) {{ {visits}; }}" if fields
                 else "  void Visit(V&) {}")
    lines.append("};\n")
    return "\n".join(lines)

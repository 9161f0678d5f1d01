"""Emits what every replacement library has: version script, constant and unsupported entries."""

import re

from surface import Answer

_OVERRIDES = """\
// Generated from proto/cuda_api/{table}.py by generator.py. Do not edit.
#pragma once

{includes}

// Hand-written entry points, exported by these declarations.
#pragma GCC visibility push(default)
extern "C" {{
{prototypes}
}}
#pragma GCC visibility pop
{declarations}"""

_ENTRIES = """\
// Generated from proto/cuda_api/{table}.py by generator.py. Do not edit.
{preamble}
#pragma GCC visibility push(default)
extern "C" {{
{entries}
}}
#pragma GCC visibility pop
"""


def version_script(library, exports):
    names = "".join(f"    {export.name};\n" for export in exports)
    node = library.soname if library.version_node is None else library.version_node
    script = f"{node} {{\n  global:\n{names}  local:\n    *;\n}};\n".lstrip()
    return script + "".join(f"{node} {{\n  global:\n    {symbol};\n}};\n"
                            for node, symbol in library.private_exports.items())


def overrides_header(library, exports, declarations=""):
    return _OVERRIDES.format(
        table=library.name, includes=includes(library), declarations=declarations,
        prototypes="\n".join(e.prototype.declaration() + ";" for e in exports
                             if e.answer is Answer.CUSTOM))


def includes(library):
    return "\n".join(f"#include <{header}>" for header in library.headers)


def entries_source(library, preamble, entries):
    return _ENTRIES.format(table=library.name, preamble=preamble, entries="\n".join(entries))


def unsupported_source(library, exports):
    # Declared without parameters: the caller's arguments are not looked at, and several of these
    # are in no public header.
    return entries_source(library, '#include "client_shim/unsupported.h"\n', (
        f'int {e.name}() {{ return torpor::shim::Unsupported("{e.name}"); }}'
        for e in exports if e.answer is Answer.UNSUPPORTED))


def local_entry(library, export):
    """An entry with a constant answer; one that writes needs NullArgument() in the preamble."""
    line = export.line
    used = set(re.findall(r"\w+", line.value)) | line.outputs.keys()
    parameters = ", ".join(f"{p.type} {p.name}" if p.name in used else p.type
                           for p in export.prototype.parameters)
    lines = [f"{export.prototype.result} {export.name}({parameters}) {{"]
    lines += [f"  if (!{name}) return NullArgument();" for name in line.outputs]
    lines += [f"  *{name} = {value};" for name, value in line.outputs.items()]
    return "\n".join(lines + [f"  return {line.value or library.success};", "}"])


def translated_entry(export, expression):
    """An entry that is its expression, once what the line needs is so."""
    used = set(re.findall(r"\w+", expression))
    parameters = ", ".join(f"{p.type} {p.name}" if p.name in used else p.type
                           for p in export.prototype.parameters)
    return (f"{export.prototype.result} {export.name}({parameters}) {{\n"
            f"  return {export.line.needs.value}([&] {{ return {expression}; }});\n}}")


def local_entries(library, exports):
    return [local_entry(library, e) for e in exports if e.answer is Answer.LOCAL]

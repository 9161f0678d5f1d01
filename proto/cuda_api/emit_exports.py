"""Emits what every replacement library has: its version script and its unsupported entries."""

from surface import Answer

_UNSUPPORTED = """\
// Generated from proto/cuda_api/{table}.py by generator.py. Do not edit.
#include "client_shim/unsupported.h"

// Declared without parameters: the caller's arguments are not looked at, and several of these are
// in no public header.
#pragma GCC visibility push(default)
extern "C" {{
{entries}
}}
#pragma GCC visibility pop
"""


def version_script(library, exports):
    names = "".join(f"    {export.name};\n" for export in exports)
    return f"{library.soname} {{\n  global:\n{names}  local:\n    *;\n}};\n"


def unsupported_source(library, exports):
    return _UNSUPPORTED.format(table=library.name, entries="\n".join(
        f'int {e.name}() {{ return torpor::shim::Unsupported("{e.name}"); }}'
        for e in exports if e.answer is Answer.UNSUPPORTED))

"""Emits the table of a library's functions, which the server looks up at run time."""

_HEADER = """\
// Generated from proto/cuda_api/{table}.py by generator.py. Do not edit.
#pragma once

#include <{header}>

namespace torpor::cuda_api {{

// {name}, looked up at run time. Functions missing in the library stay null.
struct {prefix}Functions {{
{members}
}};

// `find(symbol)` returns the symbol's address or null, as dlsym does.
template <typename Find>
{prefix}Functions Load{prefix}Functions(Find find) {{
  {prefix}Functions functions;
{loads}
  return functions;
}}

}}  // namespace torpor::cuda_api
"""


def functions_header(library, header, name, type_of):
    """`header` declares them, `name` is the library's in prose, `type_of(symbol)` a member's type
    with its name."""
    symbols = [*library.functions, *(call.symbol for call in library.calls)]
    return _HEADER.format(
        table=library.name, header=header, name=name, prefix=name.capitalize(),
        members="\n".join(f"  {type_of(s)} = nullptr;" for s in symbols),
        loads="\n".join(f'  functions.{s} = reinterpret_cast<decltype(functions.{s})>(find("{s}"));'
                        for s in symbols))

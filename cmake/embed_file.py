"""Writes a C++ source that holds a file as a constant array of characters, which ends with NUL and is
aligned as the driver wants code to be.

    embed_file.py FILE NAMESPACE SYMBOL OUTPUT
"""

import pathlib
import sys

file, namespace, symbol, output = sys.argv[1:]
numbers = ",".join(str(byte - 256 if byte > 127 else byte) for byte in pathlib.Path(file).read_bytes())
pathlib.Path(output).write_text(
    f"""namespace {namespace} {{
alignas(8) extern const char {symbol}[];
alignas(8) const char {symbol}[] = {{{numbers},0}};
}}  // namespace {namespace}
"""
)

"""Writes a C++ source that holds a text file as a constant array of characters.

    embed_text.py TEXT_FILE NAMESPACE SYMBOL OUTPUT
"""

import pathlib
import sys

text_file, namespace, symbol, output = sys.argv[1:]
numbers = ",".join(str(byte) for byte in pathlib.Path(text_file).read_bytes())
pathlib.Path(output).write_text(
    f"""namespace {namespace} {{
extern const char {symbol}[];
const char {symbol}[] = {{{numbers},0}};
}}  // namespace {namespace}
"""
)

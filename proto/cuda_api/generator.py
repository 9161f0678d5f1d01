"""Writes what the call table says into the build directory.

    generator.py wire|server TABLE --out DIRECTORY

TABLE is the path of a table file, which defines LIBRARY.
"""

import argparse
import importlib.util
import pathlib

import emit_dispatch
import emit_wire


def load_table(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.LIBRARY.check()
    return module.LIBRARY


def write_wire(library, out):
    (out / f"{library.name}_commands.h").write_text(emit_wire.wire_header(library))


def write_server(library, out):
    (out / f"{library.name}_dispatch.h").write_text(emit_dispatch.handler_header(library))
    (out / f"{library.name}_dispatch.cc").write_text(emit_dispatch.dispatch_source(library))


WRITERS = {"wire": write_wire, "server": write_server}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=WRITERS)
    parser.add_argument("table", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    WRITERS[arguments.what](load_table(arguments.table), arguments.out)


if __name__ == "__main__":
    main()

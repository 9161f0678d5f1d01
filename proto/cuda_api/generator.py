"""Writes what the call table says into the build directory.

    generator.py wire|server|fake TABLE --out DIRECTORY
    generator.py client TABLE --out DIRECTORY --toolkit-library FILE --include DIRECTORY

TABLE is the path of a table file, which defines LIBRARY. `client` needs the headers, and, unless the
table lists them, NVIDIA's library, whose exports are replaced.
"""

import argparse
import importlib.util
import pathlib

import emit_checks
import emit_constant_client
import emit_coverage
import emit_cublas_client
import emit_cuda_client
import emit_cudart_client
import emit_cudnn_client
import emit_dispatch
import emit_exports
import emit_nvml_client
import emit_wire
import surface


def load_table(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.LIBRARY.check()
    return module.LIBRARY


def write_wire(library, out, _):
    (out / f"{library.name}_commands.h").write_text(emit_wire.wire_header(library))
    if library.calls:
        (out / f"{library.name}_checks.h").write_text(emit_checks.checks_header(library))


def write_server(library, out, _):
    (out / f"{library.name}_dispatch.h").write_text(emit_dispatch.handler_header(library))
    (out / f"{library.name}_dispatch.cc").write_text(emit_dispatch.dispatch_source(library))
    if library.calls:
        (out / f"{library.name}_functions.h").write_text(
            emit_dispatch.server_calls(library).functions_header(library))


def write_client(library, out, arguments):
    exports = surface.read_surface(library, arguments.toolkit_library, arguments.include)
    emit = {"cudart": emit_cudart_client, "cublas": emit_cublas_client,
            "cuda": emit_cuda_client, "cudnn": emit_cudnn_client,
            "nvml": emit_nvml_client}.get(library.name, emit_constant_client)
    (out / "exports.map").write_text(emit_exports.version_script(library, exports))
    (out / "overrides.h").write_text(emit.overrides_header(library, exports))
    (out / "entries.cc").write_text(emit.entries_source(library, exports))
    (out / "unsupported_entries.cc").write_text(
        emit_exports.unsupported_source(library, exports))
    (out / "coverage.md").write_text(emit_coverage.section(library, exports))
    if library.name == "cudart":
        (out / "runtime_functions.h").write_text(
            emit.runtime_functions_header(library, exports))
    if library.name == "cuda":
        (out / "driver_tables.cc").write_text(emit.tables_source(exports, arguments.include))


def write_fake(library, out, _):
    (out / f"fake_{library.name}_handler.h").write_text(emit_dispatch.fake_handler(library))


WRITERS = {"wire": write_wire, "server": write_server, "client": write_client,
           "fake": write_fake}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=WRITERS)
    parser.add_argument("table", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--toolkit-library", type=pathlib.Path)
    parser.add_argument("--include", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    WRITERS[arguments.what](load_table(arguments.table), arguments.out, arguments)


if __name__ == "__main__":
    main()

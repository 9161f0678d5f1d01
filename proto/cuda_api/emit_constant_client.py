"""Emits a client library that has only constant answers."""

import emit_exports


def overrides_header(library, exports):
    return emit_exports.overrides_header(library, exports)


def entries_source(library, exports):
    preamble = emit_exports.includes(library) + "\n"
    return emit_exports.entries_source(library, preamble,
                                       emit_exports.local_entries(library, exports))

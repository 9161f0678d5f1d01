"""Emits the client's libnvidia-ml: an entry a translated symbol, and the constant ones."""

import emit_exports
from surface import Answer

_PREAMBLE = """\
#include "client_shim/nvml/calls.h"

// NOLINTNEXTLINE(google-build-using-namespace): what the table's expressions name
using namespace torpor::shim;
"""


def overrides_header(library, exports):
    return emit_exports.overrides_header(library, exports)


def entries_source(library, exports):
    translated = [emit_exports.translated_entry(e, e.line.value) for e in exports
                  if e.answer is Answer.TRANSLATED]
    return emit_exports.entries_source(library, _PREAMBLE,
                                       emit_exports.local_entries(library, exports) + translated)

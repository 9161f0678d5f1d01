"""Joins a table's symbols with what NVIDIA's library exports and its headers declare."""

import dataclasses
import enum
import pathlib

import c_prototypes
import elf_exports
from vocabulary import How


class Answer(enum.Enum):
    CUSTOM = "hand-written"
    LOCAL = "local"
    REMOTED = "generated"
    VARIANT = "variant"  # generated: calls another symbol after changing an argument
    TRANSLATED = "translated"
    UNSUPPORTED = "not supported"


@dataclasses.dataclass(frozen=True)
class Export:
    name: str
    answer: Answer
    prototype: c_prototypes.Prototype | None  # None where unsupported
    line: object = None  # of the table: Symbol or Call


def read_surface(library, toolkit_library, include):
    """The library's exports in order of name; `toolkit_library` is NVIDIA's, `include` its headers.

    Where the table lists the exports, `toolkit_library` is not read. Raises ValueError where the
    table names a symbol that is not exported or not declared.
    """
    prototypes = {}
    for header in library.headers:
        text = (pathlib.Path(include) / header).read_text()
        prototypes.update(c_prototypes.parse_header(text, library.api_macros))
        c_prototypes.apply_renames(text, prototypes)
    names = sorted(library.exports) or elf_exports.exported_names(toolkit_library)
    symbols = {symbol.name: symbol for symbol in library.symbols}
    calls = {call.symbol: call for call in library.calls}
    for name in (symbols.keys() | calls.keys()) - set(names):
        source = "its list" if library.exports else toolkit_library
        raise ValueError(f"{name} is in the table but {source} does not export it")
    return [_export(name, symbols, calls, prototypes) for name in names]


def _export(name, symbols, calls, prototypes):
    call = calls.get(name.removesuffix("_64"))
    if call is not None:
        return _remoted(name, call, prototypes)
    base, variant = _base_name(name)
    symbol = symbols.get(name) or symbols.get(base)
    if symbol is None:
        _require_status(name, prototypes.get(base))
        return Export(name, Answer.UNSUPPORTED, None)
    prototype = _prototype(symbol, prototypes)
    if symbol.how is How.TRANSLATED:
        return Export(name, Answer.TRANSLATED, prototype, symbol)
    if not variant or name in symbols:
        answer = Answer.CUSTOM if symbol.how is How.CUSTOM else Answer.LOCAL
        return Export(name, answer, prototype, symbol)
    # A variant without a stream parameter can only be told from its base inside the override.
    if symbol.how is How.CUSTOM and stream_parameter(prototype) is None:
        return Export(name, Answer.CUSTOM, dataclasses.replace(prototype, name=name), symbol)
    return Export(name, Answer.VARIANT, prototype, symbol)


def _require_status(name, prototype):
    """An unsupported entry returns an int; a caller that expects more would crash on it."""
    if prototype and ("*" in prototype.result or "struct" in prototype.result):
        raise ValueError(f"{name} returns {prototype.result}, so it needs a line in the table")


def _remoted(name, call, prototypes):
    declared = [p.name for p in prototypes[name].parameters]
    if declared != list(call.parameters):
        raise ValueError(f"{name} has parameters {declared}, the table says"
                         f" {list(call.parameters)}")
    return Export(name, Answer.REMOTED, prototypes[name], call)


def _base_name(name):
    for suffix in ("_ptsz", "_ptds"):
        if name.endswith(suffix):
            return name.removesuffix(suffix), True
    return name, False


def _prototype(symbol, prototypes):
    if symbol.signature:
        result, _, parameters = symbol.signature.partition(" (")
        declaration = f"{result} API {symbol.name}({parameters};"
        return c_prototypes.parse_header(declaration, ("API",))[symbol.name]
    if symbol.name not in prototypes:
        raise ValueError(f"no header declares {symbol.name}: give its signature in the table")
    return prototypes[symbol.name]


def stream_parameter(prototype):
    return next((p.name for p in prototype.parameters if p.type in ("cudaStream_t", "CUstream")),
                None)

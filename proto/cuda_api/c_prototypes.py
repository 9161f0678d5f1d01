"""Reads function declarations out of NVIDIA's C headers."""

import dataclasses
import re

_DECORATIONS = ("extern", "__host__", "__cudart_builtin__", "__CUDA_DEPRECATED", "CUDNN_DEPRECATED")


@dataclasses.dataclass(frozen=True)
class Parameter:
    type: str
    name: str


@dataclasses.dataclass(frozen=True)
class Prototype:
    result: str
    name: str
    parameters: tuple

    def declaration(self, name=None):
        parameters = ", ".join(f"{p.type} {p.name}" for p in self.parameters)
        return f"{self.result} {name or self.name}({parameters})"

    def call(self, replace=None):
        """The call of this function with its own parameters; `replace`: name -> expression."""
        replace = replace or {}
        arguments = ", ".join(replace.get(p.name, p.name) for p in self.parameters)
        return f"{self.name}({arguments})"


def parse_header(text, api_macros):
    """name -> Prototype of every declaration that carries one of `api_macros`."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"//[^\n]*", " ", text)
    text = re.sub(r"^[ \t]*#(\\\n|[^\n])*", "", text, flags=re.M)
    text = re.sub(r"__dv\([^()]*\)", "", text)
    macros = "|".join(api_macros)
    pattern = re.compile(rf"([\w][\w\s*]*?)\s*\b(?:{macros})\s+(\w+)\s*\(([^()]*)\)\s*;")
    prototypes = {}
    for result, name, parameters in pattern.findall(text):
        result = " ".join(word for word in result.split()
                          if word not in _DECORATIONS)
        prototypes.setdefault(name, Prototype(result, name, _parameters(parameters)))
    return prototypes


def apply_renames(text, prototypes):
    """Gives declarations the names that they are exported by.

    cuda.h declares the newest form of a function by the bare name, which a macro replaces:
    #define cuMemAlloc cuMemAlloc_v2
    """
    renames = re.findall(r"^[ \t]*#\s*define\s+(\w+)\s+(?:__CUDA_API_PT[DS][SZ]\()?\1(_v\d+)\)?\s*$",
                         text, flags=re.M)
    for base, suffix in renames:
        prototype = prototypes.pop(base, None)
        if prototype is not None:
            prototypes.setdefault(base + suffix,
                                  dataclasses.replace(prototype, name=base + suffix))


def _parameters(text):
    text = " ".join(text.split())
    if text in ("", "void"):
        return ()
    return tuple(_parameter(piece.strip(), i) for i, piece in enumerate(text.split(",")))


def _parameter(text, index):
    text = text.partition("=")[0].strip()  # without a default argument
    array = re.fullmatch(r"(.*?)\s*\b(\w+)\[\w*\]", text)
    if array:
        return Parameter(array.group(1) + " *", array.group(2))
    named = re.fullmatch(r"(.*[\s*])(\w+)", text)
    nameless = not named or named.group(1).strip() in ("struct", "enum", "const") or (
        named.group(1).strip() == "unsigned" and named.group(2) in ("char", "int", "long", "short"))
    if nameless:
        return Parameter(text, f"argument{index}")
    return Parameter(named.group(1).strip(), named.group(2))

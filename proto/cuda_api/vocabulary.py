"""The words in which the call table is written.

A table file (cudart.py, cublas.py) builds one `Library` out of them. Call ids are explicit and
never reused: an id that once had a meaning stays with it, or stays empty.
"""

import dataclasses
import enum


class Order(enum.Enum):
    LOCAL = "local"  # answered in the client
    STREAM = "stream"  # asynchronous: queued, batched, never answered
    SYNC = "sync"  # flushes the batch and waits for the reply


LOCAL, STREAM, SYNC = Order.LOCAL, Order.STREAM, Order.SYNC


@dataclasses.dataclass(frozen=True)
class Type:
    """A type of a wire field: how C++ holds it in a command and in a result."""

    command: str
    result: str = ""
    initial: str = ""  # initialiser of a command's field

    @property
    def in_result(self):
        return self.result or self.command


u8 = Type("std::uint8_t", initial=" = 0")
u32 = Type("std::uint32_t", initial=" = 0")
i32 = Type("std::int32_t", initial=" = 0")
u64 = Type("std::uint64_t", initial=" = 0")
i64 = Type("std::int64_t", initial=" = 0")
f32 = Type("float", initial=" = 0")
f64 = Type("double", initial=" = 0")
string = Type("std::string")
# A command borrows the bytes that it was decoded from; a result owns its own.
blob = Type("std::span<const std::uint8_t>", result="std::vector<std::uint8_t>")
payload = Type("Payload", initial=" = Payload::kInline")


def array(element, count):
    return Type(f"std::array<{element.command}, {count}>", initial="{}")


def vector(element):
    return Type(f"std::vector<{element.in_result}>")


@dataclasses.dataclass(frozen=True)
class Struct:
    """A structure that travels inside results and, in vectors, inside commands."""

    name: str
    note: str
    fields: dict

    @property
    def in_result(self):
        return self.name


@dataclasses.dataclass(frozen=True)
class Enumeration:
    name: str
    note: str
    values: dict

    @property
    def command(self):
        return self.name

    @property
    def in_result(self):
        return self.name

    @property
    def initial(self):
        return f" = {self.name}::{next(iter(self.values))}"


@dataclasses.dataclass(frozen=True)
class Constant:
    name: str
    note: str
    type: Type
    value: str


@dataclasses.dataclass(frozen=True)
class Command:
    """A message that the executor carries out; hand-written C entries send it."""

    id: int
    name: str
    order: Order
    fields: dict
    note: str = ""
    result: dict | None = None  # SYNC only


def command(call_id, name, order, /, note="", returns=None, **fields):
    if order is SYNC:
        returns = returns or {}
    elif returns is not None:
        raise ValueError(f"{name}: only SYNC commands return something")
    return Command(call_id, name, order, fields, note, returns)


# Words for the parameters of remoted functions. Expressions are C++ over the function's parameters
# by their names; blas_extents.h has the functions they may call.


@dataclasses.dataclass(frozen=True)
class Handle:
    """A client-minted library handle."""

    kind: str


@dataclasses.dataclass(frozen=True)
class StreamHandle:
    """A library handle on which nothing is set but a stream: the stream travels, no handle does."""

    kind: str


@dataclasses.dataclass(frozen=True)
class Descriptor:
    """A descriptor of the program's, which travels by value; `wire` is that value."""

    c_type: str
    wire: Type


@dataclasses.dataclass(frozen=True)
class Value:
    """Passed by value. `valid`: a predicate of blas_extents.h that every number must satisfy."""

    c_type: str
    wire: Type
    valid: str = ""


@dataclasses.dataclass(frozen=True)
class Element:
    c_type: str
    bytes: str


@dataclasses.dataclass(frozen=True)
class Matrix:
    """Column-major in device memory; with `count`, that many, `stride` elements apart."""

    element: Element
    rows: str
    columns: str
    leading: str
    stride: str = ""
    count: str = ""


@dataclasses.dataclass(frozen=True)
class Vector:
    element: Element
    n: str
    increment: str


@dataclasses.dataclass(frozen=True)
class Packed:
    """The half of an n x n matrix, one column after another."""

    element: Element
    n: str


@dataclasses.dataclass(frozen=True)
class Pointers:
    """`count` addresses of device memory in device memory, which nobody but the GPU reads."""

    element: Element
    count: str


@dataclasses.dataclass(frozen=True)
class Described:
    """What a descriptor, another parameter, says."""

    descriptor: str


@dataclasses.dataclass(frozen=True)
class Bytes:
    """So many bytes as another parameter says, or an expression of others."""

    count: str


class Access(enum.Enum):
    READ = "kRead"
    READ_WRITE = "kReadWrite"
    WRITE = "kWrite"


@dataclasses.dataclass(frozen=True)
class DevicePtr:
    """A pointer to device memory of the extent that `what` (Matrix, Vector, Packed, Pointers,
    Described or Bytes) gives."""

    what: object
    access: Access
    may_be_null: bool = False


def In(what, may_be_null=False):
    return DevicePtr(what, Access.READ, may_be_null)


def InOut(what, may_be_null=False):
    return DevicePtr(what, Access.READ_WRITE, may_be_null)


def Out(what, may_be_null=False):
    return DevicePtr(what, Access.WRITE, may_be_null)


@dataclasses.dataclass(frozen=True)
class Scalar:
    """In host or device memory, as the handle's pointer mode says; at most 16 bytes, or all 40 of
    a modified rotation."""

    element: Element


@dataclasses.dataclass(frozen=True)
class HostScalar:
    """In host memory, at most 8 bytes; as many as `bytes` makes of the type of a tensor's
    elements."""

    descriptor: str
    bytes: str = "DnnScalarBytes"


@dataclasses.dataclass(frozen=True)
class SizeAnswer:
    """Where a size goes that only the library knows: asked once for the same other parameters."""


@dataclasses.dataclass(frozen=True)
class ScalarResult:
    """Where the result goes, as the handle's pointer mode says: to the host is SYNC. It may be read
    before it is written."""

    element: Element
    access: Access = Access.WRITE


@dataclasses.dataclass(frozen=True)
class ParameterInfo:
    """A host int that tells at once which parameter was wrong; 0 where the call is sent."""


@dataclasses.dataclass(frozen=True)
class Call:
    """A remoted function that is generated whole: client entry, wire struct, check, server call.

    `host_id` is the id of its SYNC form where a ScalarResult goes to the host. Where the client
    computes results for the host itself, `host_function` names the function of torpor::shim that
    does, of all parameters but the handle.
    """

    id: int
    symbol: str
    parameters: dict
    host_id: int | None = None
    host_function: str = ""

    @property
    def name(self):
        kind = next(w.kind for w in self.parameters.values()
                    if isinstance(w, (Handle, StreamHandle)))
        return kind + self.symbol.removeprefix(kind.lower()).removesuffix("_v2")


_SCALAR, _ROTATION = Type("CublasScalar"), Type("CublasRotation")


def _wire_type(word):
    if isinstance(word, (Value, Descriptor)):
        return word.wire
    if isinstance(word, HostScalar):
        return array(u8, 8)
    if not isinstance(word, Scalar):
        return u64
    return _ROTATION if word.element.bytes.isdigit() and int(word.element.bytes) > 16 else _SCALAR


def call_commands(call):
    """A Call on the wire: a STREAM command, and a SYNC one where a result goes to the host."""
    fields = {"stream" if isinstance(word, StreamHandle) else name: _wire_type(word)
              for name, word in call.parameters.items()
              if not isinstance(word, (ParameterInfo, SizeAnswer))}
    if any(isinstance(word, SizeAnswer) for word in call.parameters.values()):
        yield Command(call.id, call.name, SYNC, fields, result={"bytes": u64})
        return
    yield Command(call.id, call.name, STREAM, fields)
    if call.host_id is not None:
        results = [name for name, word in call.parameters.items()
                   if isinstance(word, ScalarResult)]
        inputs = {name: type_ for name, type_ in fields.items() if name not in results}
        yield Command(call.host_id, call.name + "ToHost", SYNC, inputs,
                      result={name: array(u8, 16) for name in results})


class How(enum.Enum):
    """What answers an exported symbol."""

    CUSTOM = "custom"  # hand-written in client_shim/
    LOCAL = "local"  # a constant answer, generated
    TRANSLATED = "translated"  # an expression over its parameters, generated


class Needs(enum.Enum):
    """What must be so before a translated symbol does anything."""

    NOTHING = "Always"
    DRIVER = "Initialized"  # cuInit, or nvmlInit, was called
    CONTEXT = "InContext"  # the calling thread has a context


@dataclasses.dataclass(frozen=True)
class Symbol:
    name: str
    how: How
    signature: str = ""  # where no header declares it: "result (type name, ...)"
    outputs: dict = dataclasses.field(default_factory=dict)  # LOCAL: parameter -> expression
    value: str = ""  # LOCAL: what it returns, where that is no status; TRANSLATED: the expression
    needs: Needs = Needs.NOTHING  # TRANSLATED
    order: Order = Order.LOCAL


def custom(name, order, signature=""):
    return Symbol(name, How.CUSTOM, signature, order=order)


def local(name, signature="", /, **outputs):
    """Succeeds at once after writing the expressions where the parameters point."""
    return Symbol(name, How.LOCAL, signature, outputs)


def value(name, expression):
    """Returns an expression over its parameters."""
    return Symbol(name, How.LOCAL, value=expression)


def translated(name, expression, needs=Needs.CONTEXT, signature=""):
    """Returns, as a status, a C++ expression over its parameters.

    It may call functions of the runtime (cudaMalloc(...)) and those of client_shim/<library>/. In
    it {ptds} is the suffix of a runtime function that has a per-thread variant, {stream} the
    default stream: both are other ones in the symbol's own per-thread variant.
    """
    return Symbol(name, How.TRANSLATED, signature, value=expression, needs=needs)


@dataclasses.dataclass
class Library:
    """One of NVIDIA's libraries: what its calls send, and what its symbols answer."""

    name: str  # names the generated files
    prefix: str  # names the generated classes
    first_id: int
    last_id: int
    commands: list
    constants: list = dataclasses.field(default_factory=list)
    enumerations: list = dataclasses.field(default_factory=list)
    structs: list = dataclasses.field(default_factory=list)
    symbols: list = dataclasses.field(default_factory=list)
    calls: list = dataclasses.field(default_factory=list)
    functions: tuple = ()  # what the server also needs of the real library, beside the calls
    soname: str = ""
    version_node: str | None = None  # of its exports: the soname; "" where they have none
    private_exports: dict = dataclasses.field(default_factory=dict)  # version node -> a symbol
    exports: tuple = ()  # of a library that is not at hand to be read
    headers: tuple = ()  # of the toolkit, which declare the symbols
    api_macros: tuple = ()  # mark those declarations
    wire_headers: tuple = ()  # with the structures that its commands are made of
    check_header: str = "proto/cuda_api/blas_extents.h"  # with what says whether fields make sense
    success: str = ""  # of its status type
    # Subject -> the names of its commands. With subjects the server has a handler for each.
    subjects: dict = dataclasses.field(default_factory=dict)

    @property
    def wire_commands(self):
        """Everything that crosses the wire."""
        return [*self.commands, *(c for call in self.calls for c in call_commands(call))]

    def subject_of(self, command):
        """The subject that names the command."""
        return next(s for s, names in self.subjects.items() if command.name in names.split())

    def check_subjects(self):
        """Raises ValueError unless each command belongs to exactly one subject."""
        listed = [name for names in self.subjects.values() for name in names.split()]
        for name in {c.name for c in self.commands} ^ set(listed):
            raise ValueError(f"{name} is not both a command and listed in a subject")
        for name in listed:
            if listed.count(name) > 1:
                raise ValueError(f"{name} belongs to two subjects")

    def check(self):
        """Raises ValueError where an id is out of range or two commands share an id or a name."""
        ids, names = {}, set()
        for line in self.wire_commands:
            if not self.first_id <= line.id <= self.last_id:
                raise ValueError(f"{line.name}: id {line.id} is not one of {self.name}'s"
                                 f" ({self.first_id} to {self.last_id})")
            if line.id in ids:
                raise ValueError(f"{line.name}: id {line.id} belongs to {ids[line.id]}")
            if line.name in names:
                raise ValueError(f"{line.name} is there twice")
            ids[line.id] = line.name
            names.add(line.name)
        if self.subjects:
            self.check_subjects()
        symbols = [symbol.name for symbol in self.symbols]
        for name in symbols:
            if symbols.count(name) > 1:
                raise ValueError(f"symbol {name} is there twice")

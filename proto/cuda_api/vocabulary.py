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
    """A structure that travels inside results."""

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


class How(enum.Enum):
    """What answers an exported symbol."""

    CUSTOM = "custom"  # hand-written in client_shim/
    LOCAL = "local"  # a constant answer, generated
    REMOTED = "remoted"  # generated from the table: encode, enqueue or call


@dataclasses.dataclass(frozen=True)
class Symbol:
    name: str
    how: How
    signature: str = ""  # where no header declares it: "result (type name, ...)"
    outputs: dict = dataclasses.field(default_factory=dict)  # LOCAL: parameter -> expression


def custom(name, signature=""):
    return Symbol(name, How.CUSTOM, signature)


def local(name, signature="", /, **outputs):
    """Succeeds at once after writing the expressions where the parameters point."""
    return Symbol(name, How.LOCAL, signature, outputs)


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
    soname: str = ""
    headers: tuple = ()  # of the toolkit, which declare the symbols
    api_macros: tuple = ()  # mark those declarations

    def check(self):
        """Raises ValueError where an id is out of range or two commands share an id or a name."""
        ids, names = {}, set()
        for line in self.commands:
            if not self.first_id <= line.id <= self.last_id:
                raise ValueError(f"{line.name}: id {line.id} is not one of {self.name}'s"
                                 f" ({self.first_id} to {self.last_id})")
            if line.id in ids:
                raise ValueError(f"{line.name}: id {line.id} belongs to {ids[line.id]}")
            if line.name in names:
                raise ValueError(f"{line.name} is there twice")
            ids[line.id] = line.name
            names.add(line.name)
        symbols = [symbol.name for symbol in self.symbols]
        for name in symbols:
            if symbols.count(name) > 1:
                raise ValueError(f"symbol {name} is there twice")

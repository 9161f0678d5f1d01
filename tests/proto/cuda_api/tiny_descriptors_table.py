"""A table in the words that are for descriptors, for the generator's golden files."""

from vocabulary import (
    Bytes, Call, Described, Descriptor, HostScalar, In, InOut, Library, Out, SizeAnswer,
    StreamHandle, Type, Value, i32, u64, value)

SHAPE = Descriptor("tinyShape_t", Type("TinyShape"))

LIBRARY = Library(
    name="tiny", prefix="Cudnn", first_id=100, last_id=199, commands=[],
    calls=[
        Call(110, "tinyShade", dict(
            handle=StreamHandle("Tiny"), order=Value("tinyOrder_t", i32, "IsOrder"),
            alpha=HostScalar("yShape"), xShape=SHAPE, x=In(Described("xShape")),
            workspace=Out(Bytes("workspaceBytes"), may_be_null=True),
            workspaceBytes=Value("size_t", u64), yShape=SHAPE, y=InOut(Described("yShape")))),
        Call(111, "tinyShadeBytes", dict(
            handle=StreamHandle("Tiny"), xShape=SHAPE, bytes=SizeAnswer())),
    ],
    functions=("tinyCreate",), symbols=[value("tinyName", '"fine"')],
    soname="libtiny.so.1", headers=("tiny.h",), api_macros=("TINYAPI",), success="TINY_OK",
    check_header="tiny_shapes.h")

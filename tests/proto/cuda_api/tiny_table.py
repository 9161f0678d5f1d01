"""A table with one line of each kind, for the generator's golden files."""

from vocabulary import (
    LOCAL, STREAM, SYNC, Access, Call, Constant, Element, Enumeration, Handle, In, InOut, Library,
    Matrix, Out, Packed, ParameterInfo, Pointers, Scalar, ScalarResult, Struct, Value, Vector, array,
    blob, command, custom, f32, i32, local, string, u8, u32, u64, value, vector)

COLOUR = Enumeration("Colour", "What it looks like.", {"kRed": "as a rose", "kBlue": "as the sea"})
PART = Struct("Part", "A part of a thing.", dict(name=string, bytes=u64))
FLOAT = Element("float", "4")
INT = Value("int", i32)

LIBRARY = Library(
    name="tiny", prefix="Tiny", first_id=100, last_id=199,
    constants=[Constant("kLimit", "Most things.", u32, "7")],
    enumerations=[COLOUR], structs=[PART],
    commands=[
        command(100, "Paint", STREAM, thing=u64, colour=COLOUR, corners=array(u32, 3),
                label=string, pixels=blob, note="Paints a thing."),
        command(101, "Ask", SYNC, thing=u64,
                returns=dict(ratio=f32, parts=vector(PART), pixels=blob, key=array(u8, 16))),
        command(102, "Wait", SYNC),
    ],
    calls=[
        Call(110, "tinySmul_v2", dict(
            handle=Handle("Tiny"), order=Value("tinyOrder_t", i32, "IsOrder"), n=INT,
            alpha=Scalar(FLOAT), x=In(Vector(FLOAT, "n", "incx")), incx=INT,
            A=InOut(Matrix(FLOAT, "n", "n", "lda")), lda=INT, beta=Scalar(FLOAT),
            y=Out(Vector(FLOAT, "n", "1")))),
        Call(111, "tinySsum", dict(
            handle=Handle("Tiny"), n=INT, x=In(Vector(FLOAT, "n", "1")),
            result=ScalarResult(FLOAT)), host_id=112),
        Call(113, "tinySolve", dict(
            handle=Handle("Tiny"), n=INT, A=In(Pointers(FLOAT, "count")),
            pivots=In(Vector(FLOAT, "n", "1"), may_be_null=True), AP=In(Packed(FLOAT, "n")),
            B=InOut(Pointers(FLOAT, "count")), info=ParameterInfo(), count=INT)),
        Call(114, "tinyTurn", dict(
            handle=Handle("Tiny"), a=ScalarResult(FLOAT, Access.READ_WRITE), c=ScalarResult(FLOAT)),
            host_function="Turn"),
        Call(115, "tinyDotEx", dict(
            handle=Handle("Tiny"), n=INT, turn=Scalar(Element("float", "20")),
            result=ScalarResult(Element("void", "DataTypeBytes(type)")), type=INT), host_id=116),
    ],
    functions=("tinyCreate",),
    symbols=[
        custom("tinyCreate", STREAM),
        custom("tinyCopy", SYNC),
        local("tinyVersion", version="13"),
        value("tinyName", 'code == 0 ? "fine" : "other"'),
        custom("tinyHidden", LOCAL, "void (int depth)"),
        custom("tinySetLimit", LOCAL),
    ],
    soname="libtiny.so.1", headers=("tiny.h",), api_macros=("TINYAPI",), success="TINY_OK",
    wire_headers=("proto/cuda_api/cublas_scalar.h",))

"""cuBLAS: one line a function, or a family of four precisions.

Ids 1024 to 2047. Scalars (alpha, beta) travel in the command: by value in host pointer mode, as
an address in device pointer mode, so the pointer mode itself never crosses the wire.
"""

from vocabulary import (
    LOCAL, STREAM, SYNC, Call, Element, Handle, In, InOut, Library, Matrix, Out, Scalar,
    ScalarResult, Value, Vector, command, custom, i32, i64, u64)

# A precision's letter, its C type, and how its pointers look.
S, D = Element("float", "4"), Element("double", "8")
C, Z = Element("cuComplex", "8"), Element("cuDoubleComplex", "16")
PRECISIONS = {"S": S, "D": D, "C": C, "Z": Z}
REAL_OF = {"S": S, "D": D, "C": S, "Z": D}
INDEX = Element("int", "4")

HANDLE = Handle("Cublas")
INT = Value("int", i32)
STRIDE = Value("long long", i64)
OPERATION = Value("cublasOperation_t", i32, "IsOperation")
FILL = Value("cublasFillMode_t", i32, "IsFillMode")
SIDE = Value("cublasSideMode_t", i32, "IsSide")
DIAGONAL = Value("cublasDiagType_t", i32, "IsDiagonal")
DATA_TYPE = Value("cudaDataType", i32, "IsDataType")
COMPUTE_TYPE = Value("cublasComputeType_t", i32, "IsComputeType")
ALGORITHM = Value("cublasGemmAlgo_t", i32, "IsGemmAlgorithm")

COMMANDS = [
    command(1024, "CublasCreate", STREAM, handle=u64),
    command(1025, "CublasDestroy", STREAM, handle=u64),
    # Settings of a handle, kept in the journal.
    command(1026, "CublasSetStream", STREAM, handle=u64, stream=u64,
            note="A stream that does not live is an error of the next call, not of this one: the"
                 " journal may hold a setting that outlived its stream."),
    command(1027, "CublasSetWorkspace", STREAM, handle=u64, address=u64, bytes=u64,
            note="0 bytes, or memory that is the session's no longer: cuBLAS's own workspace."
                 " Setting a stream resets it, as cuBLAS does."),
    command(1028, "CublasSetMathMode", STREAM, handle=u64, mode=i32),
    command(1029, "CublasSetAtomicsMode", STREAM, handle=u64, mode=i32),
    command(1030, "CublasSetSmCountTarget", STREAM, handle=u64, count=i32),
]

# Of the real library, for the handler's own commands.
FUNCTIONS = ("cublasCreate_v2", "cublasDestroy_v2", "cublasSetStream_v2",
             "cublasSetPointerMode_v2", "cublasSetWorkspace_v2", "cublasSetMathMode",
             "cublasSetAtomicsMode", "cublasSetSmCountTarget")


def family(ids, symbol, parameters, host_ids=None):
    """One call a precision: `symbol` has {} or {lower} for its letter; `parameters` takes the
    element and its real part."""
    return [Call(id_, symbol.format(letter, lower=letter.lower()),
                 parameters(PRECISIONS[letter], REAL_OF[letter]),
                 host_ids[letter] if host_ids else None)
            for letter, id_ in ids.items()]


CALLS = [
    # Level 3.
    *family(dict(S=1040, D=1041, C=1042, Z=1043), "cublas{}gemm_v2", lambda T, _: dict(
        handle=HANDLE, transa=OPERATION, transb=OPERATION, m=INT, n=INT, k=INT, alpha=Scalar(T),
        A=In(Matrix(T, "Oriented(transa, m, k)", "Oriented(transa, k, m)", "lda")), lda=INT,
        B=In(Matrix(T, "Oriented(transb, k, n)", "Oriented(transb, n, k)", "ldb")), ldb=INT,
        beta=Scalar(T), C=InOut(Matrix(T, "m", "n", "ldc")), ldc=INT)),
    *family(dict(S=1044, D=1045, C=1046, Z=1047), "cublas{}gemmStridedBatched", lambda T, _: dict(
        handle=HANDLE, transa=OPERATION, transb=OPERATION, m=INT, n=INT, k=INT, alpha=Scalar(T),
        A=In(Matrix(T, "Oriented(transa, m, k)", "Oriented(transa, k, m)", "lda", "strideA",
                    "batchCount")), lda=INT, strideA=STRIDE,
        B=In(Matrix(T, "Oriented(transb, k, n)", "Oriented(transb, n, k)", "ldb", "strideB",
                    "batchCount")), ldb=INT, strideB=STRIDE,
        beta=Scalar(T), C=InOut(Matrix(T, "m", "n", "ldc", "strideC", "batchCount")), ldc=INT,
        strideC=STRIDE, batchCount=INT)),
    Call(1048, "cublasGemmEx", dict(
        handle=HANDLE, transa=OPERATION, transb=OPERATION, m=INT, n=INT, k=INT,
        alpha=Scalar(Element("void", "ScalarBytes(computeType, Ctype)")),
        A=In(Matrix(Element("void", "DataTypeBytes(Atype)"), "Oriented(transa, m, k)",
                    "Oriented(transa, k, m)", "lda")), Atype=DATA_TYPE, lda=INT,
        B=In(Matrix(Element("void", "DataTypeBytes(Btype)"), "Oriented(transb, k, n)",
                    "Oriented(transb, n, k)", "ldb")), Btype=DATA_TYPE, ldb=INT,
        beta=Scalar(Element("void", "ScalarBytes(computeType, Ctype)")),
        C=InOut(Matrix(Element("void", "DataTypeBytes(Ctype)"), "m", "n", "ldc")),
        Ctype=DATA_TYPE, ldc=INT, computeType=COMPUTE_TYPE, algo=ALGORITHM)),
    Call(1049, "cublasGemmStridedBatchedEx", dict(
        handle=HANDLE, transa=OPERATION, transb=OPERATION, m=INT, n=INT, k=INT,
        alpha=Scalar(Element("void", "ScalarBytes(computeType, Ctype)")),
        A=In(Matrix(Element("void", "DataTypeBytes(Atype)"), "Oriented(transa, m, k)",
                    "Oriented(transa, k, m)", "lda", "strideA", "batchCount")),
        Atype=DATA_TYPE, lda=INT, strideA=STRIDE,
        B=In(Matrix(Element("void", "DataTypeBytes(Btype)"), "Oriented(transb, k, n)",
                    "Oriented(transb, n, k)", "ldb", "strideB", "batchCount")),
        Btype=DATA_TYPE, ldb=INT, strideB=STRIDE,
        beta=Scalar(Element("void", "ScalarBytes(computeType, Ctype)")),
        C=InOut(Matrix(Element("void", "DataTypeBytes(Ctype)"), "m", "n", "ldc", "strideC",
                       "batchCount")), Ctype=DATA_TYPE, ldc=INT, strideC=STRIDE,
        batchCount=INT, computeType=COMPUTE_TYPE, algo=ALGORITHM)),
    *family(dict(S=1050, D=1051, C=1052, Z=1053), "cublas{}syrk_v2", lambda T, _: dict(
        handle=HANDLE, uplo=FILL, trans=OPERATION, n=INT, k=INT, alpha=Scalar(T),
        A=In(Matrix(T, "Oriented(trans, n, k)", "Oriented(trans, k, n)", "lda")), lda=INT,
        beta=Scalar(T), C=InOut(Matrix(T, "n", "n", "ldc")), ldc=INT)),
    *family(dict(S=1054, D=1055, C=1056, Z=1057), "cublas{}symm_v2", lambda T, _: dict(
        handle=HANDLE, side=SIDE, uplo=FILL, m=INT, n=INT, alpha=Scalar(T),
        A=In(Matrix(T, "Sided(side, m, n)", "Sided(side, m, n)", "lda")), lda=INT,
        B=In(Matrix(T, "m", "n", "ldb")), ldb=INT, beta=Scalar(T),
        C=InOut(Matrix(T, "m", "n", "ldc")), ldc=INT)),
    *family(dict(S=1058, D=1059, C=1060, Z=1061), "cublas{}trsm_v2", lambda T, _: dict(
        handle=HANDLE, side=SIDE, uplo=FILL, trans=OPERATION, diag=DIAGONAL, m=INT, n=INT,
        alpha=Scalar(T), A=In(Matrix(T, "Sided(side, m, n)", "Sided(side, m, n)", "lda")),
        lda=INT, B=InOut(Matrix(T, "m", "n", "ldb")), ldb=INT)),
    *family(dict(S=1062, D=1063, C=1064, Z=1065), "cublas{}trmm_v2", lambda T, _: dict(
        handle=HANDLE, side=SIDE, uplo=FILL, trans=OPERATION, diag=DIAGONAL, m=INT, n=INT,
        alpha=Scalar(T), A=In(Matrix(T, "Sided(side, m, n)", "Sided(side, m, n)", "lda")),
        lda=INT, B=In(Matrix(T, "m", "n", "ldb")), ldb=INT, C=InOut(Matrix(T, "m", "n", "ldc")),
        ldc=INT)),
    *family(dict(S=1066, D=1067, C=1068, Z=1069), "cublas{}geam", lambda T, _: dict(
        handle=HANDLE, transa=OPERATION, transb=OPERATION, m=INT, n=INT, alpha=Scalar(T),
        A=In(Matrix(T, "Oriented(transa, m, n)", "Oriented(transa, n, m)", "lda")), lda=INT,
        beta=Scalar(T),
        B=In(Matrix(T, "Oriented(transb, m, n)", "Oriented(transb, n, m)", "ldb")), ldb=INT,
        C=InOut(Matrix(T, "m", "n", "ldc")), ldc=INT)),
    *family(dict(S=1070, D=1071, C=1072, Z=1073), "cublas{}dgmm", lambda T, _: dict(
        handle=HANDLE, mode=SIDE, m=INT, n=INT, A=In(Matrix(T, "m", "n", "lda")), lda=INT,
        x=In(Vector(T, "Sided(mode, m, n)", "incx")), incx=INT,
        C=InOut(Matrix(T, "m", "n", "ldc")), ldc=INT)),
    # Level 2.
    *family(dict(S=1080, D=1081, C=1082, Z=1083), "cublas{}gemv_v2", lambda T, _: dict(
        handle=HANDLE, trans=OPERATION, m=INT, n=INT, alpha=Scalar(T),
        A=In(Matrix(T, "m", "n", "lda")), lda=INT,
        x=In(Vector(T, "Oriented(trans, n, m)", "incx")), incx=INT, beta=Scalar(T),
        y=InOut(Vector(T, "Oriented(trans, m, n)", "incy")), incy=INT)),
    *family(dict(S=1084, D=1085), "cublas{}ger_v2", lambda T, _: dict(
        handle=HANDLE, m=INT, n=INT, alpha=Scalar(T), x=In(Vector(T, "m", "incx")), incx=INT,
        y=In(Vector(T, "n", "incy")), incy=INT, A=InOut(Matrix(T, "m", "n", "lda")), lda=INT)),
    *family(dict(S=1086, D=1087, C=1088, Z=1089), "cublas{}symv_v2", lambda T, _: dict(
        handle=HANDLE, uplo=FILL, n=INT, alpha=Scalar(T), A=In(Matrix(T, "n", "n", "lda")),
        lda=INT, x=In(Vector(T, "n", "incx")), incx=INT, beta=Scalar(T),
        y=InOut(Vector(T, "n", "incy")), incy=INT)),
    *family(dict(S=1090, D=1091, C=1092, Z=1093), "cublas{}trsv_v2", lambda T, _: dict(
        handle=HANDLE, uplo=FILL, trans=OPERATION, diag=DIAGONAL, n=INT,
        A=In(Matrix(T, "n", "n", "lda")), lda=INT, x=InOut(Vector(T, "n", "incx")), incx=INT)),
    *family(dict(S=1094, D=1095, C=1096, Z=1097), "cublas{}trmv_v2", lambda T, _: dict(
        handle=HANDLE, uplo=FILL, trans=OPERATION, diag=DIAGONAL, n=INT,
        A=In(Matrix(T, "n", "n", "lda")), lda=INT, x=InOut(Vector(T, "n", "incx")), incx=INT)),
    *family(dict(S=1098, D=1099, C=1100, Z=1101), "cublas{}syr_v2", lambda T, _: dict(
        handle=HANDLE, uplo=FILL, n=INT, alpha=Scalar(T), x=In(Vector(T, "n", "incx")), incx=INT,
        A=InOut(Matrix(T, "n", "n", "lda")), lda=INT)),
    # Level 1.
    *family(dict(S=1120, D=1121, C=1122, Z=1123), "cublas{}axpy_v2", lambda T, _: dict(
        handle=HANDLE, n=INT, alpha=Scalar(T), x=In(Vector(T, "n", "incx")), incx=INT,
        y=InOut(Vector(T, "n", "incy")), incy=INT)),
    *family(dict(S=1124, D=1125, C=1126, Z=1127), "cublas{}scal_v2", lambda T, _: dict(
        handle=HANDLE, n=INT, alpha=Scalar(T), x=InOut(Vector(T, "n", "incx")), incx=INT)),
    *family(dict(S=1128, D=1129, C=1130, Z=1131), "cublas{}copy_v2", lambda T, _: dict(
        handle=HANDLE, n=INT, x=In(Vector(T, "n", "incx")), incx=INT,
        y=Out(Vector(T, "n", "incy")), incy=INT)),
    *family(dict(S=1132, D=1133, C=1134, Z=1135), "cublas{}swap_v2", lambda T, _: dict(
        handle=HANDLE, n=INT, x=InOut(Vector(T, "n", "incx")), incx=INT,
        y=InOut(Vector(T, "n", "incy")), incy=INT)),
    *family(dict(S=1136, D=1137), "cublas{}dot_v2", lambda T, _: dict(
        handle=HANDLE, n=INT, x=In(Vector(T, "n", "incx")), incx=INT,
        y=In(Vector(T, "n", "incy")), incy=INT, result=ScalarResult(T)),
            host_ids=dict(S=1138, D=1139)),
    *family(dict(C=1140, Z=1141), "cublas{}dotu_v2", lambda T, _: dict(
        handle=HANDLE, n=INT, x=In(Vector(T, "n", "incx")), incx=INT,
        y=In(Vector(T, "n", "incy")), incy=INT, result=ScalarResult(T)),
            host_ids=dict(C=1142, Z=1143)),
    *family(dict(C=1144, Z=1145), "cublas{}dotc_v2", lambda T, _: dict(
        handle=HANDLE, n=INT, x=In(Vector(T, "n", "incx")), incx=INT,
        y=In(Vector(T, "n", "incy")), incy=INT, result=ScalarResult(T)),
            host_ids=dict(C=1146, Z=1147)),
    *family(dict(S=1148, D=1149), "cublas{}nrm2_v2", lambda T, real: dict(
        handle=HANDLE, n=INT, x=In(Vector(T, "n", "incx")), incx=INT, result=ScalarResult(real)),
            host_ids=dict(S=1150, D=1151)),
    *family(dict(S=1152, D=1153), "cublas{}asum_v2", lambda T, real: dict(
        handle=HANDLE, n=INT, x=In(Vector(T, "n", "incx")), incx=INT, result=ScalarResult(real)),
            host_ids=dict(S=1154, D=1155)),
    *family(dict(S=1156, D=1157, C=1158, Z=1159), "cublasI{lower}amax_v2", lambda T, _: dict(
        handle=HANDLE, n=INT, x=In(Vector(T, "n", "incx")), incx=INT,
        result=ScalarResult(INDEX)), host_ids=dict(S=1160, D=1161, C=1162, Z=1163)),
    *family(dict(S=1164, D=1165, C=1166, Z=1167), "cublasI{lower}amin_v2", lambda T, _: dict(
        handle=HANDLE, n=INT, x=In(Vector(T, "n", "incx")), incx=INT,
        result=ScalarResult(INDEX)), host_ids=dict(S=1168, D=1169, C=1170, Z=1171)),
]

# Whose C entries are hand-written in client_shim/cublas/. Settings are sent when a call needs them.
_CUSTOM = {
    LOCAL: """
cublasGetVersion_v2 cublasGetProperty cublasGetCudartVersion
cublasSetStream_v2 cublasGetStream_v2 cublasSetPointerMode_v2 cublasGetPointerMode_v2
cublasSetMathMode cublasGetMathMode cublasSetAtomicsMode cublasGetAtomicsMode
cublasSetWorkspace_v2 cublasSetSmCountTarget cublasGetSmCountTarget
cublasGetStatusName cublasGetStatusString cublasXerbla cublasLoggerConfigure
""",
    STREAM: """
cublasCreate_v2 cublasDestroy_v2
cublasSetVectorAsync cublasGetVectorAsync cublasSetMatrixAsync cublasGetMatrixAsync
cublasSetVectorAsync_64 cublasGetVectorAsync_64 cublasSetMatrixAsync_64 cublasGetMatrixAsync_64
""",
    SYNC: """
cublasSetVector cublasGetVector cublasSetMatrix cublasGetMatrix
cublasSetVector_64 cublasGetVector_64 cublasSetMatrix_64 cublasGetMatrix_64
""",
}

SYMBOLS = [custom(name, order) for order, names in _CUSTOM.items() for name in names.split()]

LIBRARY = Library(name="cublas", prefix="Cublas", first_id=1024, last_id=2047, commands=COMMANDS,
                  calls=CALLS, functions=FUNCTIONS, symbols=SYMBOLS, soname="libcublas.so.13",
                  headers=("cublas_api.h",), api_macros=("CUBLASWINAPI",))

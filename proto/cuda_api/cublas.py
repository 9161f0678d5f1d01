"""cuBLAS: one line a function, or a family of precisions, in the files that are imported here.

Ids 1024 to 2047. Scalars (alpha, beta) travel in the command: by value in host pointer mode, as
an address in device pointer mode, so the pointer mode itself never crosses the wire.
"""

import cublas_batched
import cublas_matrices
import cublas_matrix_vector
import cublas_vectors
from vocabulary import LOCAL, STREAM, SYNC, Library, command, custom, i32, u64

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

CALLS = [*cublas_matrices.CALLS, *cublas_matrix_vector.CALLS, *cublas_vectors.CALLS,
         *cublas_batched.CALLS]

# Whose C entries are hand-written in client_shim/cublas/. Settings are sent when a call needs them.
_CUSTOM = {
    LOCAL: """
cublasGetVersion_v2 cublasGetProperty cublasGetCudartVersion
cublasSetStream_v2 cublasGetStream_v2 cublasSetPointerMode_v2 cublasGetPointerMode_v2
cublasSetMathMode cublasGetMathMode cublasSetAtomicsMode cublasGetAtomicsMode
cublasSetWorkspace_v2 cublasSetSmCountTarget cublasGetSmCountTarget
cublasGetStatusName cublasGetStatusString cublasXerbla cublasLoggerConfigure
cublasSetLoggerCallback cublasGetLoggerCallback
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
                  headers=("cublas_api.h",), api_macros=("CUBLASWINAPI",),
                  wire_headers=("proto/cuda_api/cublas_scalar.h",))

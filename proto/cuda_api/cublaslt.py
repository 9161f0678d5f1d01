"""cuBLASLt. Ids 2048 to 3071.

Descriptors are the program's own memory and travel by value inside the calls that use them. A
handle is a name of this process only: the executor has one of its own for all.
"""

from vocabulary import (
    LOCAL, STREAM, SYNC, Library, Type, command, custom, u32, u64, value, vector)

PROBLEM, ALGORITHM = Type("CublasLtProblem"), Type("CublasLtAlgorithm")
PREFERENCE, ANSWER = Type("LtMatmulPreference"), Type("CublasLtAnswer")
SCALAR = Type("CublasScalar")

COMMANDS = [
    command(2048, "CublasLtMatmul", STREAM, stream=u64, problem=PROBLEM, alpha=SCALAR, A=u64, B=u64,
            beta=SCALAR, C=u64, D=u64, algorithm=ALGORITHM, workspace=u64, workspace_bytes=u64,
            note="Scalars as in cuBLAS. C may be 0 where beta is a 0 by value."),
    command(2049, "CublasLtMatmulHeuristic", SYNC, problem=PROBLEM, preference=PREFERENCE,
            requested=u32, note="Of a problem without addresses, see LtWithoutAddresses. Best first,"
                                " no more than were requested.",
            returns=dict(answers=vector(ANSWER))),
]

_CUSTOM = {
    LOCAL: """
cublasLtCreate cublasLtDestroy cublasLtGetProperty cublasLtGetStatusName cublasLtGetStatusString
cublasLtHeuristicsCacheGetCapacity cublasLtHeuristicsCacheSetCapacity
cublasLtMatrixLayoutInit_internal cublasLtMatrixLayoutCreate cublasLtMatrixLayoutDestroy
cublasLtMatrixLayoutSetAttribute cublasLtMatrixLayoutGetAttribute
cublasLtMatmulDescInit_internal cublasLtMatmulDescCreate cublasLtMatmulDescDestroy
cublasLtMatmulDescSetAttribute cublasLtMatmulDescGetAttribute
cublasLtMatmulPreferenceInit_internal cublasLtMatmulPreferenceCreate
cublasLtMatmulPreferenceDestroy cublasLtMatmulPreferenceSetAttribute
cublasLtMatmulPreferenceGetAttribute
cublasLtLoggerSetCallback cublasLtLoggerSetFile cublasLtLoggerOpenFile cublasLtLoggerSetLevel
cublasLtLoggerSetMask cublasLtLoggerForceDisable
""",
    STREAM: "cublasLtMatmul",
    # Once for each problem and preference.
    SYNC: "cublasLtMatmulAlgoGetHeuristic cublasLtMatmulAlgoCheck",
}

SYMBOLS = [
    value("cublasLtGetVersion", "CUBLAS_VERSION"),
    value("cublasLtGetCudartVersion", "CUDART_VERSION"),
    *(custom(name, order) for order, names in _CUSTOM.items() for name in names.split()),
]

LIBRARY = Library(name="cublaslt", prefix="CublasLt", first_id=2048, last_id=3071,
                  commands=COMMANDS, symbols=SYMBOLS, soname="libcublasLt.so.13",
                  headers=("cuda_runtime_api.h", "cublasLt.h"), api_macros=("CUBLASWINAPI",),
                  wire_headers=("proto/cuda_api/cublaslt_problem.h",))

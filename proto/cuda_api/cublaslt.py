"""cuBLASLt: nothing is remoted yet. Ids 2048 to 3071."""

from vocabulary import Library, value

SYMBOLS = [
    value("cublasLtGetVersion", "CUBLAS_VERSION"),
    value("cublasLtGetCudartVersion", "CUDART_VERSION"),
    # These two statuses are all that this library returns.
    value("cublasLtGetStatusName",
          'status == CUBLAS_STATUS_SUCCESS ? "CUBLAS_STATUS_SUCCESS"'
          ' : status == CUBLAS_STATUS_NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED" : "<unknown>"'),
    value("cublasLtGetStatusString",
          'status == CUBLAS_STATUS_SUCCESS ? "success"'
          ' : status == CUBLAS_STATUS_NOT_SUPPORTED ? "not supported by Torpor"'
          ' : "unknown status"'),
]

LIBRARY = Library(name="cublaslt", prefix="CublasLt", first_id=2048, last_id=3071, commands=[],
                  symbols=SYMBOLS, soname="libcublasLt.so.13",
                  headers=("cuda_runtime_api.h", "cublasLt.h"), api_macros=("CUBLASWINAPI",))

"""cuDNN: nothing is remoted yet. Ids 3072 to 4095."""

from vocabulary import Library, value

SYMBOLS = [
    value("cudnnGetVersion", "CUDNN_VERSION"),
    value("cudnnGetCudartVersion", "CUDART_VERSION"),
    # These two statuses are all that this library returns.
    value("cudnnGetErrorString",
          'status == CUDNN_STATUS_SUCCESS ? "CUDNN_STATUS_SUCCESS"'
          ' : status == CUDNN_STATUS_NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED" : "<unknown>"'),
]

LIBRARY = Library(name="cudnn", prefix="Cudnn", first_id=3072, last_id=4095, commands=[],
                  symbols=SYMBOLS, soname="libcudnn.so.9",
                  headers=("cuda_runtime_api.h", "cudnn_graph.h", "cudnn_ops.h", "cudnn_cnn.h",
                           "cudnn_adv.h", "cudnn_backend.h"), api_macros=("CUDNNWINAPI",))

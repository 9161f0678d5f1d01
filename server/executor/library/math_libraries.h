#pragma once

#include "server/executor/library/cublas_library.h"
#include "server/executor/library/cublaslt_library.h"
#include "server/executor/library/cudnn_library.h"

namespace torpor::executor {

// The mathematical libraries found by the executor, each empty if missing: a node needs only the
// libraries that its functions use. Shared by all sessions.
struct MathLibraries {
  CublasPool cublas{cuda_api::CublasFunctions()};
  CublasLtLibrary cublaslt{CublasLtFunctions()};
  CudnnPool cudnn{cuda_api::CudnnFunctions()};
};

}  // namespace torpor::executor

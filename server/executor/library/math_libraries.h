#pragma once

#include "server/executor/library/cublas_library.h"
#include "server/executor/library/cublaslt_library.h"
#include "server/executor/library/cudnn_library.h"

namespace torpor::executor {

// The libraries beside the driver, as far as this executor has found them: a node whose functions
// use none needs none.
struct MathLibraries {
  CublasPool cublas{cuda_api::CublasFunctions()};
  CublasLtLibrary cublaslt{CublasLtFunctions()};
  CudnnPool cudnn{cuda_api::CudnnFunctions()};
};

}  // namespace torpor::executor

// The answer of cuBLAS functions that the emulator lacks.
#include "emulator/library/unsupported.h"

#include "emulator/blas/api.h"

namespace torpor::emulator {

int BlasNotSupported(const char* function) {
  SayUnsupported(function);
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

}  // namespace torpor::emulator

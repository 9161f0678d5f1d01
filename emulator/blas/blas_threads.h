#pragma once

namespace torpor::emulator {

// Limits the threads of one call of OpenBLAS, as TORPOR_EMULATOR_BLAS_THREADS says; the first time.
void LimitBlasThreads();

}  // namespace torpor::emulator

#pragma once

namespace torpor::emulator {

// Sets the number of threads of an OpenBLAS call to LibraryThreads(). Only the first call has an
// effect.
void LimitBlasThreads();

}  // namespace torpor::emulator

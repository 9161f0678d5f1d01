#pragma once

namespace torpor::emulator {

// Threads of one library call: TORPOR_EMULATOR_BLAS_THREADS, else half the cores, at most 8. An
// executor shares the machine with its siblings and with the threads that run kernels, and a
// library's threads spin between calls.
int LibraryThreads();

}  // namespace torpor::emulator

#include "emulator/blas/blas_threads.h"

#include <mutex>

#include "emulator/library/thread_count.h"

extern "C" void openblas_set_num_threads(int threads);

namespace torpor::emulator {

void LimitBlasThreads() {
  static std::once_flag limited;
  std::call_once(limited, [] { openblas_set_num_threads(LibraryThreads()); });
}

}  // namespace torpor::emulator

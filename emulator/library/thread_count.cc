#include "emulator/library/thread_count.h"

#include <algorithm>
#include <cstdlib>
#include <thread>

namespace torpor::emulator {

int LibraryThreads() {
  constexpr int kMax = 8;
  if (const char* wanted = std::getenv("TORPOR_EMULATOR_BLAS_THREADS"); wanted != nullptr) {
    return std::max(1, std::atoi(wanted));
  }
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(cores / 2, 1, kMax);
}

}  // namespace torpor::emulator

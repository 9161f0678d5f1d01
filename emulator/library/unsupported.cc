#include "emulator/library/unsupported.h"

#include <cstdio>
#include <mutex>
#include <set>
#include <string>

namespace torpor::emulator {

void SayUnsupported(const char* function) {
  static std::mutex mutex;
  static std::set<std::string>* const said = new std::set<std::string>;
  std::lock_guard lock(mutex);
  if (said->insert(function).second) {
    std::fprintf(stderr, "torpor-emulator: %s is not supported\n", function);
  }
}

}  // namespace torpor::emulator

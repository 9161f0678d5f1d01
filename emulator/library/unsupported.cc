#include "emulator/library/unsupported.h"

#include <cstdio>
#include <mutex>
#include <set>

namespace torpor::emulator {

void SayOnce(const std::string& line) {
  static std::mutex mutex;
  static std::set<std::string>* const said = new std::set<std::string>;
  std::lock_guard lock(mutex);
  if (said->insert(line).second) std::fprintf(stderr, "torpor-emulator: %s\n", line.c_str());
}

void SayUnsupported(const char* function) { SayOnce(std::string(function) + " is not supported"); }

}  // namespace torpor::emulator

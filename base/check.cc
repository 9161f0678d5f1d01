#include "base/check.h"

#include <spdlog/spdlog.h>

#include <cstdlib>

namespace torpor {

void CheckFailed(std::string_view condition, const char* file, int line) {
  spdlog::critical("{}:{}: broken invariant: {}", file, line, condition);
  spdlog::shutdown();
  std::abort();
}

}  // namespace torpor

#include "base/descriptor_limit.h"

#include <sys/resource.h>

#include <algorithm>

namespace torpor {

void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);  // a refusal leaves the old limit
}

int ReservedDescriptors() {
  constexpr rlim_t kMost = 512;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return static_cast<int>(std::min(kMost, limit.rlim_cur / 4));
}

}  // namespace torpor

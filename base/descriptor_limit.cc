#include "base/descriptor_limit.h"

#include <sys/resource.h>

namespace torpor {

void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);  // a refusal leaves the old limit
}

}  // namespace torpor

#include <cstdint>
#include <cstdlib>

#include "server/node/host_memory.h"

// Whatever the system says: limits are looked for in the hierarchies' folders only.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  torpor::server::ParseCgroupLimit(text);
  torpor::server::ParseTotalMemory(text);
  for (const std::string& file : torpor::server::CgroupLimitFiles(text)) {
    if (!file.starts_with("/sys/fs/cgroup/") || file.find("..") != std::string::npos) std::abort();
  }
  return 0;
}

#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/unique_fd.h"

namespace torpor::e2e {

inline constexpr const char* kAllocationCountVariable = "TORPOR_TEST_ALLOCATION_COUNT";

// How often the processes that are started from now on ask the driver for memory, where that is
// counting_driver.cc's. One at a time.
class AllocationCount {
 public:
  explicit AllocationCount(const std::string& path)
      : file_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    if (ftruncate(file_.get(), sizeof(std::uint64_t)) != 0) std::abort();
    setenv(kAllocationCountVariable, path.c_str(), 1);
  }
  ~AllocationCount() { unsetenv(kAllocationCountVariable); }
  AllocationCount(const AllocationCount&) = delete;
  AllocationCount& operator=(const AllocationCount&) = delete;

  std::uint64_t Read() const {
    std::uint64_t count = 0;
    if (pread(file_.get(), &count, sizeof(count), 0) != sizeof(count)) std::abort();
    return count;
  }

 private:
  const UniqueFd file_;
};

}  // namespace torpor::e2e

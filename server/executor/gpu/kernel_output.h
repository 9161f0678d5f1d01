#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "server/executor/gpu/cuda_driver.h"

namespace torpor::executor {

// The output of kernels, which a driver writes to the process's standard output, and the driver's
// messages about failures. Leases run one at a time and end drained, so the output belongs to the
// running session. Thread-safe.
class KernelOutput {
 public:
  // Take returns nothing before TakeOver.
  KernelOutput() = default;
  KernelOutput(const KernelOutput&) = delete;
  KernelOutput& operator=(const KernelOutput&) = delete;

  // Redirects the process's standard output and the driver's log to the object, which must live as
  // long as the process. Call once.
  absl::Status TakeOver(const CudaDriver& driver);

  // Replaces `printed` and `said` (lines without the last newline) by the next part of the output;
  // returns false if there is no more.
  bool Take(std::vector<std::uint8_t>& printed, std::string& said);
  // As Take, for the driver's lines only.
  std::string TakeSaid();
  // Drops all output so far.
  void Discard();

 private:
  static void OnMessage(void* self, CUlogLevel level, char* text, std::size_t length);
  void TakePrinted(std::vector<std::uint8_t>& printed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  UniqueFd file_ ABSL_GUARDED_BY(mutex_);  // behind standard output, only ever appended to
  std::uint64_t taken_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string said_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace torpor::executor

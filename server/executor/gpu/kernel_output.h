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

// What kernels print, which a driver writes to the standard output of its process, and what the
// driver says of their failures. One lease at a time, each ending drained, makes it the output of
// the session that runs. Thread-safe.
class KernelOutput {
 public:
  // Until TakeOver there is nothing to take.
  KernelOutput() = default;
  KernelOutput(const KernelOutput&) = delete;
  KernelOutput& operator=(const KernelOutput&) = delete;

  // Makes this process's standard output, whose former use ends, and the driver's log ours. Once;
  // `this` must live as long as the process.
  absl::Status TakeOver(const CudaDriver& driver);

  // The next part of what has come since, in place of `printed` and `said` (lines without the last
  // newline); false: no more.
  bool Take(std::vector<std::uint8_t>& printed, std::string& said);
  // Of that only the driver's lines.
  std::string TakeSaid();
  // Forgets what has come.
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

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "base/mutex.h"
#include "server/executor/gpu/captured_stream.h"
#include "server/executor/gpu/cuda_driver.h"

namespace torpor::executor {

// The output of kernels, which a driver writes to the process's standard output and, for failed
// assertions, to standard error; and the driver's log of failing calls. Leases run one at a time
// and end drained, so the output belongs to the running session. Thread-safe.
class KernelOutput {
 public:
  // Take returns nothing before TakeOver.
  KernelOutput() = default;
  KernelOutput(const KernelOutput&) = delete;
  KernelOutput& operator=(const KernelOutput&) = delete;

  // Redirects the process's standard streams and the driver's log to the object, which must live as
  // long as the process. What a crashing process says goes to the former standard error all the
  // same. Call once, after the log got a descriptor of its own.
  absl::Status TakeOver(const CudaDriver& driver);

  // Whose lines are taken: a driver logs failing calls, among them calls that were to fail, so a
  // program sees the log only if a kernel of the program has cost the context.
  enum class Lines { kOfKernels, kOfKernelsAndLog };
  // Replaces `printed` and `said` (lines without the last newline) by the next part of the output;
  // returns false if there is no more.
  bool Take(std::vector<std::uint8_t>& printed, std::string& said, Lines lines);
  // Takes all lines, and leaves what kernels printed.
  std::string TakeSaid();
  // Drops all output so far.
  void Discard();

 private:
  static void OnMessage(void* self, CUlogLevel level, char* text, std::size_t length);
  // Appends the lines to `said`, and copies the lines of kernels to this process's log.
  void TakeLines(std::string& said, Lines lines) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  CapturedStream printed_ ABSL_GUARDED_BY(mutex_);
  CapturedStream told_ ABSL_GUARDED_BY(mutex_);
  std::string logged_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace torpor::executor

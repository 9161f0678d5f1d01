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
  // There is no output before TakeOver.
  KernelOutput() = default;
  KernelOutput(const KernelOutput&) = delete;
  KernelOutput& operator=(const KernelOutput&) = delete;

  // Redirects the process's standard streams and the driver's log to the object, which must live as
  // long as the process. What a crashing process says goes to the former standard error all the
  // same. Call once, after the log got a descriptor of its own.
  absl::Status TakeOver(const CudaDriver& driver);

  // Replaces `printed` by the next part of what kernels printed; returns false if there is no more.
  bool TakePrinted(std::vector<std::uint8_t>& printed);
  // Returns the lines of failed assertions and then of the driver's log, without the last newline.
  // A driver logs all failing calls, also calls that may fail, so a program sees the lines only if
  // one of its kernels has cost the context.
  std::string TakeSaid();
  // Drops all output so far, and copies assertions to this process's log.
  void Discard();

 private:
  static void OnMessage(void* self, CUlogLevel level, char* text, std::size_t length);
  Mutex mutex_;
  CapturedStream printed_ ABSL_GUARDED_BY(mutex_);
  CapturedStream told_ ABSL_GUARDED_BY(mutex_);
  std::string logged_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace torpor::executor

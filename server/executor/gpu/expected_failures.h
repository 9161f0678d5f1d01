#pragma once

namespace torpor::executor {

// As long as an object lives, calls of this thread to the driver may fail on purpose, as probes do:
// KernelOutput drops what the driver logs of them. Objects may be nested.
class ExpectedFailures {
 public:
  ExpectedFailures() { ++depth_; }
  ~ExpectedFailures() { --depth_; }
  ExpectedFailures(const ExpectedFailures&) = delete;
  ExpectedFailures& operator=(const ExpectedFailures&) = delete;

  // Whether the calling thread expects failures.
  static bool AreExpected() { return depth_ > 0; }

 private:
  static inline thread_local int depth_ = 0;
};

}  // namespace torpor::executor

#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "client_shim/core/trace_summary.h"

namespace torpor::shim {

// The trace event format of Chrome and Perfetto, as an array of events. Its text is right for these
// programs also where the end is missing. Not thread-safe.
class ChromeTrace {
 public:
  // Times are since the trace began.
  struct Span {
    std::chrono::nanoseconds begin{0};
    std::chrono::nanoseconds length{0};
    int thread = 0;
  };

  ChromeTrace(int process, std::string_view program);

  void AddCall(const FinishedCall& call, const Span& span);
  void AddWait(TracedWaitFor what, const Span& span);
  // On a line of their own.
  void AddSection(std::string_view name, std::chrono::nanoseconds begin,
                  std::chrono::nanoseconds length);
  void End() { text_ += "\n]\n"; }

  std::size_t pending_bytes() const { return text_.size(); }
  // What was added since it was last called.
  std::string Take();

 private:
  void AddEvent(std::string_view name, std::string_view category, const Span& span,
                std::string_view arguments);
  void AddName(std::string_view what, int thread, std::string_view name);

  const std::string process_;
  std::string text_;
};

}  // namespace torpor::shim

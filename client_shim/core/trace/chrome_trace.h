#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "client_shim/core/trace/trace_summary.h"

namespace torpor::shim {

// Writes the trace event format of Chrome and Perfetto, an array of events. Both programs also
// accept a text without the closing bracket, such as the trace of a killed program. Not
// thread-safe.
class ChromeTrace {
 public:
  // Times count from the begin of the trace.
  struct Span {
    std::chrono::nanoseconds begin{0};
    std::chrono::nanoseconds length{0};
    int thread = 0;
  };

  ChromeTrace(int process, std::string_view program);

  void AddCall(const FinishedCall& call, const Span& span);
  void AddWait(TracedWaitFor what, const Span& span);
  // Sections have a line of their own.
  void AddSection(std::string_view name, std::chrono::nanoseconds begin,
                  std::chrono::nanoseconds length);
  void End() { text_ += "\n]\n"; }

  std::size_t pending_bytes() const { return text_.size(); }
  // Returns the text added since the previous call.
  std::string Take();

 private:
  void AddEvent(std::string_view name, std::string_view category, const Span& span,
                std::string_view arguments);
  void AddName(std::string_view what, int thread, std::string_view name);

  const std::string process_;
  std::string text_;
};

}  // namespace torpor::shim

#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "client_shim/core/call_tracer.h"
#include "client_shim/core/trace/chrome_trace.h"
#include "client_shim/core/trace/trace_summary.h"

namespace torpor::shim {

// Collects statistics of the program's calls; reports each section at the section's end and the
// whole program at Finish. Takes one mutex at the end of each call.
class Tracer final : public CallTracer {
 public:
  // Receives text; called under the tracer's mutex.
  using Sink = std::function<void(const std::string&)>;

  // `say` receives the summaries, `write` the text of the Chrome trace if `trace` is set.
  Tracer(Sink say, std::optional<ChromeTrace> trace, Sink write);

  void BeginCall(const char* name) noexcept override;
  void EndCall() noexcept override;
  void BeginWait(TracedWaitFor what) noexcept override;
  void EndWait() noexcept override;
  void NoteCommand(std::uint64_t bytes) noexcept override;
  void NoteBytes(std::uint64_t up, std::uint64_t down) noexcept override;
  void NoteBatch() noexcept override;
  void BeginSection(const char* name) noexcept override;

  // Reports the whole program. Later calls are not recorded.
  void Finish() noexcept;

 private:
  using Time = std::chrono::steady_clock::time_point;

  std::chrono::nanoseconds SinceBegin(Time time) const { return time - began_; }
  void FinishCall(Time end);
  void FinishWait(TracedWaitFor what, Time begin, Time end);
  void EndSection(Time now);
  void WriteTrace();
  // Runs `body` under the mutex. If memory runs out, the trace has a gap.
  template <typename Body>
  void Locked(const Body& body) noexcept;

  const Sink say_;
  const Sink write_;
  const Time began_ = std::chrono::steady_clock::now();

  std::mutex mutex_;  // guards what follows
  std::optional<ChromeTrace> trace_;
  TraceSummary total_;
  TraceSummary section_;
  std::string section_name_;  // empty: outside of sections
  Time section_began_;
  bool is_finished_ = false;
};

}  // namespace torpor::shim

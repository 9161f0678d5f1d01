#include "client_shim/core/trace/tracer.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "client_shim/core/trace/trace_caller.h"

namespace torpor::shim {
namespace {

// Size of the trace's text that triggers a write.
constexpr std::size_t kWriteBytes = std::size_t{64} * 1024;
constexpr std::size_t kMaxCallerBytes = 200;
// The name for work without a call of the program.
constexpr const char* kOwnWork = "(the shim's own work)";
// Maximal depth of nested waits; the core's own depth is two.
constexpr int kMaxWaits = 4;

using Time = std::chrono::steady_clock::time_point;

// The calling thread's present call. Trivial, so that calls from exit handlers may still use it.
struct CallAtHand {
  const char* name;
  int calls;  // depth of nesting
  int waits;  // depth of nesting
  unsigned commands;
  unsigned answers;
  std::uint64_t bytes_up;
  std::uint64_t bytes_down;
  Time begin;
  std::chrono::nanoseconds waited;
  Time wait_begins[kMaxWaits];
  TracedWaitFor wait_reasons[kMaxWaits];
  char caller[kMaxCallerBytes];
};
constinit thread_local CallAtHand at_hand{};
constinit thread_local int thread_number = 0;

int ThreadNumber() {
  if (thread_number == 0) thread_number = gettid();
  return thread_number;
}

bool IsAnswer(TracedWaitFor what) {
  return what == TracedWaitFor::kExecutor || what == TracedWaitFor::kDaemon;
}

void NoteCaller() noexcept try {
  if (at_hand.caller[0] != '\0') return;
  const std::string caller = CallerOutsideOfShim();
  std::memcpy(at_hand.caller, caller.data(), std::min(caller.size(), kMaxCallerBytes - 1));
} catch (...) {  // without
}

}  // namespace

Tracer::Tracer(Sink say, std::optional<ChromeTrace> trace, Sink write)
    : say_(std::move(say)), write_(std::move(write)), trace_(std::move(trace)) {}

template <typename Body>
void Tracer::Locked(const Body& body) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    if (!is_finished_) body();
  } catch (...) {
  }
}

void Tracer::BeginCall(const char* name) noexcept {
  if (at_hand.calls++ > 0) return;
  at_hand = CallAtHand{};
  at_hand.name = name;
  at_hand.calls = 1;
  at_hand.begin = std::chrono::steady_clock::now();
}

void Tracer::EndCall() noexcept {
  if (--at_hand.calls > 0) return;
  const Time end = std::chrono::steady_clock::now();
  Locked([&] { FinishCall(end); });
}

void Tracer::FinishCall(Time end) {
  const FinishedCall call{at_hand.name,     at_hand.caller,     at_hand.commands, at_hand.answers,
                          at_hand.bytes_up, at_hand.bytes_down, at_hand.waited};
  total_.Add(call);
  if (!section_name_.empty()) section_.Add(call);
  if (!trace_ || call.kind() == CallKind::kLocal) return;
  trace_->AddCall(call, {SinceBegin(at_hand.begin), end - at_hand.begin, ThreadNumber()});
  if (trace_->pending_bytes() >= kWriteBytes) WriteTrace();
}

void Tracer::BeginWait(TracedWaitFor what) noexcept {
  BeginCall(kOwnWork);
  if (IsAnswer(what)) {
    ++at_hand.answers;
    NoteCaller();
  }
  const int depth = at_hand.waits++;
  if (depth >= kMaxWaits) return;
  at_hand.wait_reasons[depth] = what;
  at_hand.wait_begins[depth] = std::chrono::steady_clock::now();
}

void Tracer::EndWait() noexcept {
  if (const int depth = --at_hand.waits; depth < kMaxWaits) {
    const Time begin = at_hand.wait_begins[depth];
    const Time end = std::chrono::steady_clock::now();
    if (depth == 0) at_hand.waited += end - begin;
    Locked([&] { FinishWait(at_hand.wait_reasons[depth], begin, end); });
  }
  EndCall();
}

void Tracer::FinishWait(TracedWaitFor what, Time begin, Time end) {
  if (!IsAnswer(what)) {
    total_.AddHold(what, end - begin);
    if (!section_name_.empty()) section_.AddHold(what, end - begin);
  }
  if (trace_) trace_->AddWait(what, {SinceBegin(begin), end - begin, ThreadNumber()});
}

void Tracer::NoteCommand(std::uint64_t bytes) noexcept {
  BeginCall(kOwnWork);
  ++at_hand.commands;
  at_hand.bytes_up += bytes;
  EndCall();
}

void Tracer::NoteBytes(std::uint64_t up, std::uint64_t down) noexcept {
  at_hand.bytes_up += up;
  at_hand.bytes_down += down;
}

void Tracer::NoteBatch() noexcept {
  Locked([&] {
    total_.AddBatch();
    if (!section_name_.empty()) section_.AddBatch();
  });
}

void Tracer::BeginSection(const char* name) noexcept {
  const Time now = std::chrono::steady_clock::now();
  Locked([&] {
    EndSection(now);
    section_name_ = name ? name : "";
    section_began_ = now;
  });
}

void Tracer::EndSection(Time now) {
  if (section_name_.empty()) return;
  say_(section_.Text(section_name_));
  section_ = {};
  if (!trace_) return;
  trace_->AddSection(section_name_, SinceBegin(section_began_), now - section_began_);
  WriteTrace();
}

void Tracer::WriteTrace() { write_(trace_->Take()); }

void Tracer::Finish() noexcept {
  const Time now = std::chrono::steady_clock::now();
  Locked([&] {
    EndSection(now);
    say_(total_.Text("in all"));
    is_finished_ = true;
    if (!trace_) return;
    trace_->End();
    WriteTrace();
  });
}

}  // namespace torpor::shim

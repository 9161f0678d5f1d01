#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "client_shim/core/call_tracer.h"

namespace torpor::shim {

inline constexpr std::size_t kTracedWaits = 5;

enum class CallKind : std::uint8_t {
  kLocal,         // answered in the process
  kAsynchronous,  // sent, not waited for
  kSynchronous,   // waited for an answer
};

// A finished call of the program.
struct FinishedCall {
  std::string_view name{};
  std::string_view caller{};  // of a synchronous call
  unsigned commands = 0;
  unsigned answers = 0;  // number of awaited answers
  std::uint64_t bytes_up = 0;
  std::uint64_t bytes_down = 0;
  std::chrono::nanoseconds waited{0};

  CallKind kind() const {
    if (answers > 0) return CallKind::kSynchronous;
    return commands > 0 ? CallKind::kAsynchronous : CallKind::kLocal;
  }
};

std::string_view NameOf(CallKind kind);
std::string_view NameOf(TracedWaitFor what);

// Statistics of the calls of a section, or of a whole program. Not thread-safe.
class TraceSummary {
 public:
  void Add(const FinishedCall& call);
  // Adds a wait for anything but an answer.
  void AddHold(TracedWaitFor what, std::chrono::nanoseconds span);
  void AddBatch() { ++batches_; }

  std::uint64_t calls(CallKind kind) const { return calls_[static_cast<std::size_t>(kind)]; }

  // Returns lines of text: the number of calls of each kind, followed by the calls' names.
  std::string Text(std::string_view title) const;

 private:
  struct Synchronous {
    std::uint64_t calls = 0;
    std::uint64_t answers = 0;
    std::chrono::nanoseconds waited{0};
  };
  struct Hold {
    std::uint64_t times = 0;
    std::chrono::nanoseconds span{0};
  };
  using Names = std::map<std::string, std::uint64_t, std::less<>>;

  std::array<std::uint64_t, 3> calls_{};
  std::uint64_t bytes_up_ = 0;
  std::uint64_t bytes_down_ = 0;
  std::uint64_t batches_ = 0;
  std::chrono::nanoseconds waited_{0};
  std::map<std::pair<std::string, std::string>, Synchronous> synchronous_;  // by name and caller
  Names asynchronous_;
  Names local_;
  std::array<Hold, kTracedWaits> holds_{};
};

}  // namespace torpor::shim

#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>

#include "absl/status/status.h"
#include "base/clock.h"
#include "tests/chaos/program_state.h"
#include "tests/e2e/child_process.h"
#include "tests/e2e/emulated_node.h"

namespace torpor::chaos {

// What became of a request.
struct Outcome {
  enum class Kind {
    kRight,
    kExcused,  // no answer, since the function was killed
    kWrong,    // another answer than the model's
    kFailed,   // no answer of the function
    // No answer of anybody: the connection broke. The function is asked next what has become of the
    // request.
    kUnanswered,
    kRefused,  // likewise, but the request was not even sent
  };
  Kind kind = Kind::kRight;
  TimePoint wanted{};  // when the first request since the last answer was sent
  TimePoint sent{};
  TimePoint answered{};
  // Of the first answer after kUnanswered: whether that request had been carried out.
  bool was_done = false;
  std::string what{};  // of all kinds but kRight and kExcused
};

// A function of the node: its process, and a model that knows the right answers. A single thread
// starts the process and asks; the process ends with that thread.
class Function {
 public:
  // `node` outlives the object and is configured with a function of that name.
  Function(const e2e::EmulatedNode& node, std::string name, std::unique_ptr<Program> program,
           unsigned seed);

  const std::string& name() const { return name_; }

  // Starts a process, whose state begins anew, and waits until it listens. A process that is killed
  // meanwhile is no error.
  absl::Status Start();
  // The next request; after kUnanswered, once earlier requests have ended, one that tells whether
  // the function has got the last.
  Outcome Ask();

  // From any thread: kills the process. Requests of it may fail until the next Start.
  void Kill();
  bool is_killed() const { return is_killed_; }
  // From any thread: the process, 0 if there is none.
  pid_t process() const;
  std::uint64_t starts() const { return starts_; }

  // Of the own thread: the last requests, the end of the process, and its messages.
  std::string Report();

 private:
  Outcome AskNext();
  Outcome AskWhatWasDone();
  // Sends the request; tells times and reply.
  e2e::Reply Send(const e2e::Turn& turn, Outcome& outcome);
  // Sets kind and description, for a reply that is as expected if `is_right`.
  void Judge(const e2e::Turn& turn, const e2e::Reply& reply, bool is_right, Outcome& outcome);

  const e2e::EmulatedNode& node_;
  const std::string name_;
  ProgramState state_;
  std::mt19937 random_;
  std::deque<std::string> last_requests_;
  std::optional<TimePoint> wanted_;  // since then there was no answer
  std::atomic<bool> is_killed_ = false;
  std::atomic<std::uint64_t> starts_ = 0;
  mutable std::mutex mutex_;  // guards process_ against its replacement
  std::unique_ptr<e2e::ChildProcess> process_;
};

}  // namespace torpor::chaos

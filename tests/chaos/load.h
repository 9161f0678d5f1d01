#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "tests/chaos/delays.h"
#include "tests/chaos/function.h"

namespace torpor::chaos {

struct RequestCounts {
  std::uint64_t right = 0;
  std::uint64_t excused = 0;
  std::uint64_t wrong = 0;
  std::uint64_t failed = 0;
  // With a router that was killed:
  std::uint64_t unanswered = 0;  // the connection broke
  std::uint64_t done = 0;        // of these; the function had carried out the request
  std::uint64_t refused = 0;     // there was no router
};

// A client for each function: a request, a pause, the next request. A client whose function was
// killed starts it again. After a kill nobody pauses before his function has answered once. Ends
// with the first fault: after a wrong answer no later one can be right. A request without any
// answer is a fault unless the router was killed, and has not answered the client since.
// Thread-safe.
class Load {
 public:
  // The functions outlive the load, and get requests of the load only.
  Load(const std::vector<std::unique_ptr<Function>>& functions, unsigned seed);
  // Ends the clients, and with them the functions' processes.
  ~Load();
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  // Notes a kill, right before the signal.
  void OnKill(Victim victim);
  // Waits until every function has answered a request that was sent after the last kill. An error
  // says who has not, or that there is a fault.
  absl::Status AwaitAnswers(Duration patience);
  // Notes that the node has recovered from all kills.
  void OnRecovery();

  bool has_fault() const;
  // What went wrong, with the function's last requests and messages.
  std::vector<std::string> faults() const;
  RequestCounts counts() const;
  Delays delays() const;

 private:
  void Serve(std::size_t index, unsigned seed);
  void Note(std::size_t index, const Outcome& outcome);
  void NoteAnswer(std::size_t index, const Outcome& outcome) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteFault(std::size_t index, const Outcome& outcome) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddFault(const std::string& what);
  void Pause(std::size_t index, Duration length);
  // Until the load is over, at most.
  void PauseWhile(Duration length, const std::function<bool()>& goes_on)
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool is_over() const;
  bool HasAnswered(std::size_t index) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether connections of the function's client may break.
  bool IsRouterGone(std::size_t index) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string Missing() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::vector<std::unique_ptr<Function>>& functions_;
  mutable Mutex mutex_;
  absl::CondVar changed_;
  bool is_over_ ABSL_GUARDED_BY(mutex_) = false;
  TimePoint last_kill_ ABSL_GUARDED_BY(mutex_);
  TimePoint last_router_kill_ ABSL_GUARDED_BY(mutex_){};
  // Of each function, when the last request was sent that has been answered rightly.
  std::vector<TimePoint> answered_ ABSL_GUARDED_BY(mutex_);
  RequestCounts counts_ ABSL_GUARDED_BY(mutex_);
  Delays delays_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> faults_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> clients_;
};

}  // namespace torpor::chaos

#pragma once

#include <poll.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "base/unique_fd.h"

namespace torpor::shim {

// A background thread that polls descriptors on behalf of a session. The program's signals are
// blocked on the thread.
class ServiceThread {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // The thread's work; called on the thread alone.
  class Work {
   public:
    virtual ~Work() = default;
    // Appends the descriptors to poll. Returns the time at which to call OnReady at the latest;
    // nullopt to wait for descriptors and Wake only.
    virtual std::optional<Time> Prepare(std::vector<pollfd>& fds) = 0;
    // Called after each poll with Prepare's descriptors and the events, if any.
    virtual void OnReady(std::span<const pollfd> fds) = 0;
  };

  ServiceThread();
  ~ServiceThread();
  ServiceThread(const ServiceThread&) = delete;
  ServiceThread& operator=(const ServiceThread&) = delete;

  // Starts the thread. `work` must outlive Stop. Call at most once.
  void Start(Work& work);
  // Makes the thread call OnReady and Prepare soon. Any thread may call, also before Start.
  void Wake() const;
  // Ends the thread after the present call of its work, if any. Not callable from the thread.
  void Stop();

 private:
  void Run(Work& work);
  void TakeWakes() const;

  UniqueFd wake_;
  std::atomic<bool> is_stopping_{false};
  std::thread thread_;
};

}  // namespace torpor::shim

#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/mutex.h"

namespace torpor::server {

// What executors say until the sessions of an earlier torpord have been restored: no executor may
// be told of sessions before, and adopted executors have let go of sessions only when they
// register. Thread-safe.
class HeldRegistrations {
 public:
  using Deliver = std::function<void()>;

  // These executors are adopted. Before all other calls.
  void Expect(std::map<pid_t, GpuIndex> adopted);

  // A process has registered: an executor with sessions only when it has let go of them.
  void NoteRegistered(pid_t process) { Settle(process); }
  void NoteEnded(pid_t process) { Settle(process); }
  // Whether Release was called: from then on nothing is kept.
  bool is_over() const { return is_over_.load(std::memory_order_acquire); }
  // Keeps `deliver` for Release, or calls it at once after that.
  void Take(Deliver deliver);

  // Waits until all expected executors have settled, at most for `patience`. Returns the
  // others.
  std::map<pid_t, GpuIndex> Await(Duration patience);

  // Delivers what was kept, in order, and all that comes from now on.
  void Release();

 private:
  void Settle(pid_t process);

  Mutex mutex_;
  absl::CondVar changed_;
  std::map<pid_t, GpuIndex> expected_ ABSL_GUARDED_BY(mutex_);
  std::vector<Deliver> held_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> is_over_{false};  // written under mutex_
};

}  // namespace torpor::server

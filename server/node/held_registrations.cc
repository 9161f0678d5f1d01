#include "server/node/held_registrations.h"

#include <utility>

#include "absl/time/time.h"

namespace torpor::server {

void HeldRegistrations::Expect(std::map<pid_t, GpuIndex> adopted) {
  MutexLock lock(&mutex_);
  expected_ = std::move(adopted);
}

void HeldRegistrations::Settle(pid_t process) {
  MutexLock lock(&mutex_);
  if (expected_.erase(process) > 0) changed_.SignalAll();
}

void HeldRegistrations::Take(Deliver deliver) {
  MutexLock lock(&mutex_);
  if (is_over()) return deliver();
  held_.push_back(std::move(deliver));
}

std::map<pid_t, GpuIndex> HeldRegistrations::Await(Duration patience) {
  const TimePoint until = SteadyClock().Now() + patience;
  MutexLock lock(&mutex_);
  while (!expected_.empty()) {
    const Duration left = until - SteadyClock().Now();
    if (left <= Duration::zero()) break;
    mutex_.WaitFor(changed_, absl::FromChrono(left));
  }
  return expected_;
}

void HeldRegistrations::Release() {
  MutexLock lock(&mutex_);
  for (const Deliver& deliver : std::exchange(held_, {})) deliver();
  is_over_.store(true, std::memory_order_release);
}

}  // namespace torpor::server

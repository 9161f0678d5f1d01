#include "server/node/held_registrations.h"

#include <utility>

#include "absl/time/time.h"

namespace torpor::server {

void HeldRegistrations::Expect(const std::map<GpuIndex, ProcessIdentity>& adopted) {
  MutexLock lock(&mutex_);
  for (const auto& [gpu, process] : adopted) expected_.insert(gpu);
}

void HeldRegistrations::NoteSettled(GpuIndex gpu) {
  MutexLock lock(&mutex_);
  expected_.erase(gpu);
  changed_.SignalAll();
}

void HeldRegistrations::Take(Deliver deliver) {
  MutexLock lock(&mutex_);
  if (is_over()) return deliver();
  held_.push_back(std::move(deliver));
}

std::set<GpuIndex> HeldRegistrations::Await(Duration patience) {
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

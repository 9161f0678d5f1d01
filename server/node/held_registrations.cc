#include "server/node/held_registrations.h"

#include <utility>

#include "absl/time/time.h"

namespace torpor::server {

void HeldRegistrations::Expect(const std::map<GpuIndex, pid_t>& adopted) {
  MutexLock lock(&mutex_);
  expected_ = adopted;
}

void HeldRegistrations::NoteRegistered(GpuIndex gpu, pid_t process) {
  MutexLock lock(&mutex_);
  const auto expected = expected_.find(gpu);
  if (expected == expected_.end() || expected->second != process) return;
  expected_.erase(expected);
  changed_.SignalAll();
}

void HeldRegistrations::NoteEnded(GpuIndex gpu) {
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
  std::set<GpuIndex> missing;
  for (const auto& [gpu, process] : expected_) missing.insert(gpu);
  return missing;
}

void HeldRegistrations::Release() {
  MutexLock lock(&mutex_);
  for (const Deliver& deliver : std::exchange(held_, {})) deliver();
  is_over_.store(true, std::memory_order_release);
}

}  // namespace torpor::server

#include "emulator/driver/stream/call_costs.h"

#include <algorithm>
#include <thread>

namespace torpor::emulator {
namespace {

// Shorter sleeps cost more processor time than they are worth.
constexpr Duration kStep = std::chrono::microseconds(100);

}  // namespace

CallCosts::CallCosts(const Topology& topology)
    : enabled_(topology.strict.costs),
      costs_(topology.costs),
      real_ns_per_us_(topology.time_scale * 1000) {}

// A sleep ends late, and the excess is credit. Calls that take longer than their model earn credit
// for one step at most: they must not make a later burst of calls free. Waiting for the lock earns
// none.
void CallCosts::Charge(double modelled_us, TimePoint begun) {
  const Duration modelled(static_cast<Duration::rep>(modelled_us * real_ns_per_us_));
  const Duration spent = std::chrono::steady_clock::now() - begun;
  const std::lock_guard lock(mutex_);
  const Duration most_credit = std::min(owed_, -kStep);
  owed_ = std::max(owed_ + modelled - spent, most_credit);
  if (owed_ < kStep) return;
  const TimePoint asleep = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(owed_);
  owed_ -= std::chrono::steady_clock::now() - asleep;
}

}  // namespace torpor::emulator

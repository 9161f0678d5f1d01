#pragma once

#include <mutex>

#include "base/clock.h"
#include "emulator/node/topology.h"

namespace torpor::emulator {

// Makes driver calls on one GPU take the modelled times of DriverCosts, if the topology's
// strictness has `costs`. Times too short to sleep add up; the call that fills a step of 100 us
// sleeps the whole step under the lock that every other call needs, as a real driver's calls wait
// for the lock of their context. Time that a call took anyway counts. Thread-safe.
class CallCosts {
 public:
  explicit CallCosts(const Topology& topology);

  bool enabled() const { return enabled_; }
  const DriverCosts& costs() const { return costs_; }
  // Accounts for a call that began at `begun` and takes `modelled_us` in modelled microseconds.
  void Charge(double modelled_us, TimePoint begun);

 private:
  const bool enabled_;
  const DriverCosts costs_;
  const double real_ns_per_us_;

  std::mutex mutex_;
  Duration owed_{};  // may be negative: time that earlier calls took beyond their model
};

// Charges a call from its construction to its end.
class CostedCall {
 public:
  // `costs` must outlive the object.
  CostedCall(CallCosts& costs, double modelled_us) : costs_(costs), modelled_us_(modelled_us) {
    if (costs.enabled()) begun_ = std::chrono::steady_clock::now();
  }
  ~CostedCall() {
    if (costs_.enabled()) costs_.Charge(modelled_us_, begun_);
  }
  CostedCall(const CostedCall&) = delete;
  CostedCall& operator=(const CostedCall&) = delete;

 private:
  CallCosts& costs_;
  const double modelled_us_;
  TimePoint begun_{};
};

}  // namespace torpor::emulator

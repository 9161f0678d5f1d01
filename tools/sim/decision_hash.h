#pragma once

#include <cstdint>

#include "base/clock.h"
#include "scheduler/events.h"

namespace torpor::sim {

// Hash of a scheduler's events and actions in order: the same decisions give the same hash on every
// machine. Not cryptographic.
class DecisionHash {
 public:
  void Add(std::uint64_t word) {
    state_ = (state_ ^ word) * kMultiplier;
    state_ ^= state_ >> 32;
  }
  void Add(const scheduler::Event& event, TimePoint now);
  void Add(const scheduler::Action& action);

  std::uint64_t value() const { return state_; }

 private:
  static constexpr std::uint64_t kMultiplier = 0x9E3779B97F4A7C15;  // 2^64 over the golden ratio

  std::uint64_t state_ = kMultiplier;
};

}  // namespace torpor::sim

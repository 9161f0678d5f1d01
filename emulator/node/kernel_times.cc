#include "emulator/node/kernel_times.h"

#include <fnmatch.h>

#include <cmath>

namespace torpor::emulator {

KernelTimes::KernelTimes(const Topology& topology) {
  for (const KernelTime& kernel : topology.kernels) {
    entries_.push_back(
        {kernel.name, Duration(std::llround(kernel.us * 1000 * topology.time_scale))});
  }
}

// Remembers answers: matching globs costs more than a launch.
std::optional<Duration> KernelTimes::Of(const std::string& kernel) {
  if (entries_.empty()) return std::nullopt;
  std::lock_guard lock(mutex_);
  const auto [known, is_new] = known_.try_emplace(kernel);
  if (is_new) known->second = Match(kernel);
  return known->second;
}

// The first pattern that matches counts.
std::optional<Duration> KernelTimes::Match(const std::string& kernel) const {
  for (const Entry& entry : entries_) {
    if (fnmatch(entry.pattern.c_str(), kernel.c_str(), 0) == 0) return entry.duration;
  }
  return std::nullopt;
}

}  // namespace torpor::emulator

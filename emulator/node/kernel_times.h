#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "emulator/node/topology.h"

namespace torpor::emulator {

// Modelled durations of kernels, by name. Thread-safe.
class KernelTimes {
 public:
  explicit KernelTimes(const Topology& topology);

  // Returns the duration in real time, or nullopt for a kernel without a modelled duration.
  std::optional<Duration> Of(const std::string& kernel);

 private:
  std::optional<Duration> Match(const std::string& kernel) const;

  struct Entry {
    std::string pattern;
    Duration duration;
  };
  std::vector<Entry> entries_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::optional<Duration>> known_;
};

}  // namespace torpor::emulator

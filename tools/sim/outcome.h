#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "base/units.h"

namespace torpor::sim {

// Sources of a request's image.
enum class Path : std::uint8_t { kResident, kHost, kPeer };
inline constexpr std::size_t kPaths = 3;

// Requests and bytes by source of the image.
struct PathCounts {
  std::array<std::uint64_t, kPaths> requests{};
  std::array<Bytes, kPaths> bytes{};  // moved

  void Add(const PathCounts& other);
};

// Outcomes of a function's requests. All arrivals count; refused and unserved requests are late.
struct FunctionOutcome {
  std::uint32_t arrived = 0;
  std::uint32_t in_time = 0;
  std::uint32_t late = 0;  // served, after the deadline
  std::uint32_t refused = 0;
  std::uint32_t unserved = 0;               // still waiting at the end
  std::vector<std::uint32_t> latencies_us;  // of served requests
  PathCounts paths;

  std::uint32_t served() const { return in_time + late; }
  bool ran() const { return served() > 0; }
  // Whether at least the share `percentile` was in time. True without requests.
  bool Complies(double percentile) const;
};

// Use of a GPU during the measured load.
struct GpuOutcome {
  Duration busy{};  // time with a request
  std::vector<std::uint32_t> latencies_us;
};

// Result of a simulation.
struct Outcome {
  std::vector<FunctionOutcome> functions;      // as in the scenario
  std::vector<std::vector<GpuOutcome>> nodes;  // GPUs by node
  Duration length{};                           // of the measured load
  std::uint64_t scheduler_events = 0;
  // Hash of all events and actions of the schedulers: the same for the same scenario on every
  // machine.
  std::uint64_t hash = 0;

  // Functions with a served request; functions that comply.
  std::size_t Ran() const;
  std::size_t Compliant(double percentile) const;
  double Load(std::size_t node, std::size_t gpu) const;  // share of busy time
  PathCounts Paths() const;                              // of all functions
};

// The least value not exceeded by the share `percentile` (0 to 1) of the values; 0 if empty.
// Reorders.
std::uint32_t Percentile(std::vector<std::uint32_t>& values, double percentile);

}  // namespace torpor::sim

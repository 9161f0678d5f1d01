#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "base/units.h"

namespace torpor::sim {

// Where a request's image came from.
enum class Path : std::uint8_t { kResident, kHost, kPeer };
inline constexpr std::size_t kPaths = 3;

struct PathCounts {
  std::array<std::uint64_t, kPaths> requests{};
  std::array<Bytes, kPaths> bytes{};  // moved

  void Add(const PathCounts& other);
};

// What became of a function's requests. All that arrived count: refused or never served is late.
struct FunctionOutcome {
  std::uint32_t arrived = 0;
  std::uint32_t in_time = 0;
  std::uint32_t late = 0;  // served
  std::uint32_t refused = 0;
  std::uint32_t unserved = 0;               // still waiting at the end
  std::vector<std::uint32_t> latencies_us;  // of those served
  PathCounts paths;

  std::uint32_t served() const { return in_time + late; }
  bool ran() const { return served() > 0; }
  // At least that share in time. A function without requests complies.
  bool Complies(double percentile) const;
};

struct GpuOutcome {
  Duration busy{};  // a request had it
  std::vector<std::uint32_t> latencies_us;
};

// What a simulation found.
struct Outcome {
  std::vector<FunctionOutcome> functions;
  std::vector<std::vector<GpuOutcome>> nodes;
  Duration length{};
  std::uint64_t scheduler_events = 0;
  // Of all that the schedulers were told and said: the same for the same scenario, on every
  // machine.
  std::uint64_t hash = 0;

  std::size_t Ran() const;
  std::size_t Compliant(double percentile) const;
  double Load(std::size_t node, std::size_t gpu) const;  // share of the time that it was busy
  PathCounts Paths() const;
};

// The least value that at least `percentile` (0 to 1) of them do not exceed; 0 of none. Reorders.
std::uint32_t Percentile(std::vector<std::uint32_t>& values, double percentile);

}  // namespace torpor::sim

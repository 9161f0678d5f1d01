#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace torpor::loadgen {

enum class ArrivalProcess {
  kConstant,  // a function's requests at equal gaps, from a random phase
  kPoisson,   // exponential gaps, every function for itself
  // As the published artifact of Torpor draws them: gaps of whole milliseconds between the
  // requests of all functions together, from a Poisson *distribution* (far less bursty than a
  // Poisson process); which function each is for, by rate.
  kArtifact,
};

std::optional<ArrivalProcess> ParseArrivalProcess(std::string_view name);
std::string_view ArrivalProcessName(ArrivalProcess process);

struct Arrival {
  Duration at{};  // from the start of the load
  std::size_t function = 0;
};

// Every request of the run in order of time: `rates` holds each function's requests a second
// (>= 0). The same arguments give the same schedule.
std::vector<Arrival> MakeSchedule(ArrivalProcess process, const std::vector<double>& rates,
                                  Duration length, std::uint64_t seed);

}  // namespace torpor::loadgen

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "tools/workload/rates.h"

namespace torpor::workload {

// The distribution of a rate's requests in time. In every process a change of the rate from minute
// to minute stretches the gaps across the change.
enum class ArrivalProcess {
  kConstant,  // a function's requests at equal gaps, from a random phase
  kPoisson,   // exponential gaps, every function for itself
  kGamma,  // Gamma-distributed gaps of a given coefficient of variation, every function for itself
  // The arrivals of Torpor's published artifact: gaps of whole milliseconds between the requests of
  // all functions together, from a Poisson *distribution* with a mean of 60000 over the minute's
  // requests (far less bursty than a Poisson process). Each request's function is drawn by the
  // functions' rates in the minute.
  kArtifact,
};

// Names: constant, poisson, gamma, artifact. Parsing returns nullopt for any other name.
std::optional<ArrivalProcess> ParseArrivalProcess(std::string_view name);
std::string_view ArrivalProcessName(ArrivalProcess process);

inline constexpr double kMinVariation = 0.01;
inline constexpr double kMaxVariation = 100;

// An arrival process and its parameter.
struct ArrivalModel {
  ArrivalProcess process = ArrivalProcess::kPoisson;
  // Coefficient of variation for kGamma: standard deviation of a function's gaps over their mean,
  // from kMinVariation to kMaxVariation. A variation of 1 equals kPoisson.
  double variation = 1;
};

// A request of a function.
struct Arrival {
  Duration at{};  // from the start of the load
  std::size_t function = 0;
};

// The requests of a load in order of time. Not thread-safe.
class ArrivalStream {
 public:
  virtual ~ArrivalStream() = default;

  // Returns the next request; nullopt at the end, and from then on.
  virtual std::optional<Arrival> Next() = 0;
};

// Makes the requests of `rates` in [0, `length`), in memory for at most a request a function. The
// same arguments give the same arrivals on every machine. Except for kArtifact, simultaneous
// requests come in order of functions, a function's arrivals depend on no other function, and a
// load begins in a steady state, without a common burst.
std::unique_ptr<ArrivalStream> MakeArrivals(const ArrivalModel& model, MinuteRates rates,
                                            Duration length, std::uint64_t seed);

}  // namespace torpor::workload

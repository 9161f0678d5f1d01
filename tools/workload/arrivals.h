#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "base/clock.h"
#include "tools/workload/rates.h"

namespace torpor::workload {

// How the requests that a rate stands for are spread. In all of them a rate that changes from
// minute to minute stretches the gaps that reach across the change.
enum class ArrivalProcess {
  kConstant,  // a function's requests at equal gaps, from a random phase
  kPoisson,   // exponential gaps, every function for itself
  kGamma,  // Gamma-distributed gaps of a given coefficient of variation, every function for itself
  // As the published artifact of Torpor draws them: gaps of whole milliseconds between the
  // requests of all functions together, from a Poisson *distribution* of mean 60000 over the
  // requests of that minute (far less bursty than a Poisson process); which function each is for,
  // by its rate in that minute.
  kArtifact,
};

// The names are constant, poisson, gamma and artifact.
std::optional<ArrivalProcess> ParseArrivalProcess(std::string_view name);
std::string_view ArrivalProcessName(ArrivalProcess process);

inline constexpr double kMinVariation = 0.01;
inline constexpr double kMaxVariation = 100;

struct ArrivalModel {
  ArrivalProcess process = ArrivalProcess::kPoisson;
  // Of kGamma only: standard deviation of a function's gaps over their mean, from kMinVariation to
  // kMaxVariation. At 1 it is kPoisson.
  double variation = 1;
};

struct Arrival {
  Duration at{};  // from the start of the load
  std::size_t function = 0;
};

// The requests of a load, one by one in order of time.
class ArrivalStream {
 public:
  virtual ~ArrivalStream() = default;

  // Nothing at the end, and from then on.
  virtual std::optional<Arrival> Next() = 0;
};

// The requests in [0, `length`) that `rates` stands for. Holds one request a function at most,
// however many come. The same arguments give the same arrivals on every machine. But for kArtifact
// those of one instant come in order of functions, a function's arrivals depend on no other
// function, and a load begins as if it had gone on for long: no burst is common to all.
std::unique_ptr<ArrivalStream> MakeArrivals(const ArrivalModel& model, MinuteRates rates,
                                            Duration length, std::uint64_t seed);

}  // namespace torpor::workload

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "tools/loadgen/answers.h"
#include "tools/loadgen/rate_source.h"
#include "tools/workload/arrivals.h"

namespace torpor::loadgen {

// A function of a workload: its endpoint, rate, objective and exchanges.
struct FunctionLoad {
  std::string name;
  std::string host;  // host:port
  std::string path;
  double rate_per_s = 1;  // for a RateSource with UsesOwnRates()
  // `percentile` percent of the requests must be answered rightly within `objective` of the
  // intended time.
  Duration objective{std::chrono::seconds(1)};
  double percentile = 98;
  std::vector<Exchange> exchanges;
};

inline constexpr Duration kDefaultDuration = std::chrono::seconds(30);

// A load: the workload file, with the command line's changes.
struct Workload {
  workload::ArrivalModel arrivals;
  RateSource rates;
  std::uint64_t seed = 1;
  // Length of the measured part. Without a value: the rates' minutes, or kDefaultDuration for
  // constant rates.
  std::optional<Duration> duration;
  Duration warm_up{std::chrono::seconds(0)};  // before the measured part; answers are checked
  Duration timeout{std::chrono::seconds(30)};
  std::vector<FunctionLoad> functions;
};

// Reads a workload file (docs/loadgen.md has the format). Paths in the file are relative to the
// file's folder. A non-empty `target` (host:port) replaces the file's. Errors name the line.
absl::StatusOr<Workload> ReadWorkload(const std::string& path, const std::string& target);
absl::StatusOr<Workload> ParseWorkload(const std::string& yaml, const std::string& folder,
                                       const std::string& target);

// Makes the rates of all functions from `workload.rates`.
absl::StatusOr<workload::MinuteRates> MakeRates(const Workload& workload);

}  // namespace torpor::loadgen

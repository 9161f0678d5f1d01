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

struct FunctionLoad {
  std::string name;
  std::string host;  // host:port
  std::string path;
  double rate_per_s = 1;  // where the workload's rates are not all told by `rates`
  // So many percent of the requests are to be right and at most `objective` late, counted from the
  // intended time.
  Duration objective{std::chrono::seconds(1)};
  double percentile = 98;
  std::vector<Exchange> exchanges;
};

inline constexpr Duration kDefaultDuration = std::chrono::seconds(30);

// What the load is: the workload file, after the flags have had their say.
struct Workload {
  workload::ArrivalModel arrivals;
  RateSource rates;
  std::uint64_t seed = 1;
  // Nothing: as long as the rates have minutes, or kDefaultDuration if they never change.
  std::optional<Duration> duration;
  Duration warm_up{std::chrono::seconds(0)};  // before `duration`; checked, but not measured
  Duration timeout{std::chrono::seconds(30)};
  std::vector<FunctionLoad> functions;
};

// Reads a workload file; its format is in docs/loadgen.md. Files that it names are relative to
// its own folder. A `target` given here (host:port) replaces the file's.
absl::StatusOr<Workload> ReadWorkload(const std::string& path, const std::string& target);
absl::StatusOr<Workload> ParseWorkload(const std::string& yaml, const std::string& folder,
                                       const std::string& target);

// The rates of all functions, from `workload.rates`.
absl::StatusOr<workload::MinuteRates> MakeRates(const Workload& workload);

}  // namespace torpor::loadgen

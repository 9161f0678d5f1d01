#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "tools/loadgen/answers.h"
#include "tools/loadgen/arrivals.h"

namespace torpor::loadgen {

struct FunctionLoad {
  std::string name;
  std::string host;  // host:port
  std::string path;
  double rate_per_s = 0;
  Duration objective{};  // for the latency from the intended time
  std::vector<Exchange> exchanges;
};

// What the load is: the workload file, after the flags have had their say.
struct Workload {
  ArrivalProcess arrivals = ArrivalProcess::kPoisson;
  std::uint64_t seed = 1;
  Duration duration{std::chrono::seconds(30)};
  Duration warm_up{std::chrono::seconds(0)};  // before `duration`; checked, but not measured
  Duration timeout{std::chrono::seconds(30)};
  std::vector<FunctionLoad> functions;
};

// Reads a workload file; its format is in docs/loadgen.md. Files that it names are relative to
// its own folder. A `target` given here (host:port) replaces the file's.
absl::StatusOr<Workload> ReadWorkload(const std::string& path, const std::string& target);
absl::StatusOr<Workload> ParseWorkload(const std::string& yaml, const std::string& folder,
                                       const std::string& target);

}  // namespace torpor::loadgen

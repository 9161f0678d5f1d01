#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "tools/workload/rates.h"

namespace torpor::loadgen {

// Where the functions' rates come from.
struct RateSource {
  enum class Kind {
    kFunctions,  // each function's own, which never changes
    kGamma,      // drawn minute by minute around each function's own
    kFile,       // a rate file
    kTraceLike,  // generated, with the means of the paper's trace
  };
  Kind kind = Kind::kFunctions;
  std::string file;  // of kFile
  double shape = 0;  // of kGamma

  // Whether a function may have a rate of its own.
  bool UsesOwnRates() const { return kind == Kind::kFunctions || kind == Kind::kGamma; }
};

// "gamma:SHAPE", "trace-like" or the name of a file, which is relative to `folder`.
absl::StatusOr<RateSource> ParseRateSource(const std::string& text, const std::string& folder);

// `per_second` are the functions' own rates; `duration` and `seed` are those of the load. With
// kFile function i has row i; if there are more functions than rows, all draw theirs.
absl::StatusOr<workload::MinuteRates> MakeRates(const RateSource& source,
                                                const std::vector<double>& per_second,
                                                Duration duration, std::uint64_t seed);

}  // namespace torpor::loadgen

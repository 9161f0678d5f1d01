#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "tools/workload/rates.h"

namespace torpor::loadgen {

// The source of the functions' rates.
struct RateSource {
  enum class Kind {
    kFunctions,  // each function's own constant rate
    kGamma,      // drawn for each minute around each function's own rate
    kFile,       // a rate file
    kTraceLike,  // generated, with the means of the paper's trace
  };
  Kind kind = Kind::kFunctions;
  std::string file;  // path, for kFile
  double shape = 0;  // of the Gamma distribution, for kGamma; above 0

  // Returns whether a function may have a rate of its own.
  bool UsesOwnRates() const { return kind == Kind::kFunctions || kind == Kind::kGamma; }
};

// Parses "gamma:SHAPE", "trace-like" or a file name relative to `folder`. Returns InvalidArgument
// for a SHAPE that is no positive number.
absl::StatusOr<RateSource> ParseRateSource(const std::string& text, const std::string& folder);

// Makes the rates of a load. `per_second` holds the functions' own rates; `duration` and `seed` are
// the load's. With kFile function i gets row i; with more functions than rows, every function draws
// a row. Returns an error for an unreadable or malformed file.
absl::StatusOr<workload::MinuteRates> MakeRates(const RateSource& source,
                                                const std::vector<double>& per_second,
                                                Duration duration, std::uint64_t seed);

}  // namespace torpor::loadgen

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "tools/sim/figures/figure.h"

namespace torpor::sim {

struct CaseRun {
  std::uint64_t first_seed = 1;
  std::uint64_t seeds = 1;
  unsigned threads = 1;
  // Called from any of the threads, one at a time.
  std::function<void(std::size_t done, std::size_t all)> progress;
};

// A row a case: its labels and the means of its measures over the seeds. Does not depend on the
// number of threads.
std::vector<Json> RunCases(const std::vector<Case>& cases, const CaseRun& run);

// Element by element; all have the same shape. Of text, the first.
Json MeanOf(const std::vector<Json>& measures);

}  // namespace torpor::sim

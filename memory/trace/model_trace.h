#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "memory/trace/allocation_trace.h"

namespace torpor::memory {

// `count` tensors of that size.
struct TensorGroup {
  int count = 0;
  Bytes bytes = 0;
};

// A model as its framework's allocator sees it.
struct ModelShape {
  std::string name;
  double inference_ms = 0;               // the paper's Table 4, native
  std::vector<TensorGroup> parameters;   // in the order of loading
  std::vector<TensorGroup> activations;  // one after another, for one input; the last two live
};

// The paper's eight models (Table 4), their parameters within a tenth of its sizes.
const std::vector<ModelShape>& PaperModels();

// Every number but the seed and that of requests is above 0.
struct ModelTraceOptions {
  std::uint64_t seed = 1;
  std::uint32_t functions = 160;  // function i runs model i modulo their number
  std::size_t requests = 4000;
  Bytes gpu_bytes = 30 * kGiB;  // the least recently used are evicted so that blocks sum up to less
  std::size_t requests_per_idle = 16;
  std::size_t requests_per_empty_cache = 50;
};

// Requests for functions drawn at random, each a PyTorch process: its first request loads the
// parameters, every one runs the activations of one to four inputs, and now and then one empties
// its cache. The same options give the same trace.
AllocationTrace MakeModelTrace(const ModelTraceOptions& options);

}  // namespace torpor::memory

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "memory/trace/allocation_trace.h"

namespace torpor::memory {

// `count` tensors of `bytes` each.
struct TensorGroup {
  int count = 0;
  Bytes bytes = 0;
};

// The tensors of a model, as the framework allocates them.
struct ModelShape {
  std::string name;
  double inference_ms = 0;               // the paper's Table 4, native
  std::vector<TensorGroup> parameters;   // in the order of loading
  std::vector<TensorGroup> activations;  // one after another, for one input; the last two live
};

// The paper's eight models (Table 4), with parameters within a tenth of the paper's sizes.
const std::vector<ModelShape>& PaperModels();

// All numbers except `seed` and `requests` are above 0.
struct ModelTraceOptions {
  std::uint64_t seed = 1;
  std::uint32_t functions = 160;  // function i runs model i modulo their number
  std::size_t requests = 4000;
  Bytes gpu_bytes = 30 * kGiB;  // least recently used functions are evicted to stay below
  std::size_t requests_per_idle = 16;
  std::size_t requests_per_empty_cache = 50;
};

// Makes a trace of requests for randomly drawn functions, each a PyTorch process: the first request
// of a function loads the parameters, every request runs the activations of one to four inputs, and
// now and then a request empties the cache. The same options give the same trace.
AllocationTrace MakeModelTrace(const ModelTraceOptions& options);

}  // namespace torpor::memory

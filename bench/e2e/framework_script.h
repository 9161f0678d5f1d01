#pragma once

#include <string>

#include "memory/trace/model_trace.h"

namespace torpor::bench {

// Whether a framework keeps device memory of tensors that are gone for those that come, as PyTorch
// does unless PYTORCH_NO_CUDA_MEMORY_CACHING is set.
enum class TensorCache { kOn, kOff };

// A script of tests/e2e/driven/memory_script_server.cu that does to GPU memory what a framework
// does that serves such a model: it uploads the parameters and runs the model once; then every
// request reads the parameters and writes the activations.
std::string FrameworkScript(const memory::ModelShape& model, TensorCache cache);

}  // namespace torpor::bench

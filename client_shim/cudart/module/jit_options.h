#pragma once

#include <cuda_runtime_api.h>

#include <string>

namespace torpor::shim {

// The options with which a program has PTX compiled. They tune a compiler that runs elsewhere, so
// only what it is to say is looked at. The driver's CUjit_option has the same numbers.
class JitOptions {
 public:
  JitOptions(const cudaJitOption* options, void** values, unsigned count)
      : options_(options), values_(values), count_(options && values ? count : 0) {}

  // Fills in the program's log buffers, and how much is in them. `errors` may be empty.
  void Report(const std::string& errors) const;

 private:
  void** Find(cudaJitOption option) const;
  void WriteLog(cudaJitOption buffer, cudaJitOption bytes, const std::string& text) const;

  const cudaJitOption* options_;
  void** values_;
  unsigned count_;
};

}  // namespace torpor::shim

#pragma once

#include <cuda_runtime_api.h>

#include <string>

namespace torpor::shim {

// A program's options for compiling PTX. The compiler runs elsewhere and takes no tuning, so only
// the log buffers matter. Refers to the program's arrays. The driver's CUjit_option has the same
// numbers.
class JitOptions {
 public:
  JitOptions(const cudaJitOption* options, void** values, unsigned count)
      : options_(options), values_(values), count_(options && values ? count : 0) {}

  // Writes `errors`, perhaps empty, to the program's log buffers, and their filled sizes in bytes.
  void Report(const std::string& errors) const;

 private:
  void** Find(cudaJitOption option) const;
  void WriteLog(cudaJitOption buffer, cudaJitOption bytes, const std::string& text) const;

  const cudaJitOption* options_;
  void** values_;
  unsigned count_;
};

}  // namespace torpor::shim

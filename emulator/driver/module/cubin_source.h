#pragma once

#include <memory>
#include <string>
#include <vector>

#include "emulator/driver/base/driver_result.h"
#include "emulator/exec/kernel_source.h"
#include "emulator/sass/cubin.h"

namespace torpor::emulator {

// The kernels of a cubin, translated to PTX one by one. Thread-safe.
class CubinSource : public KernelSource {
 public:
  // Fails with CUDA_ERROR_INVALID_IMAGE or CUDA_ERROR_NO_BINARY_FOR_GPU if `code` is not a cubin
  // that can be translated. Kernels are translated later, by KernelPtx.
  static DriverResult<std::shared_ptr<const CubinSource>> Open(std::string code);

  unsigned architecture() const { return cubin_.architecture; }  // 75 of sm_75

  const std::vector<KernelInfo>& kernels() const override { return kernels_; }
  const std::vector<Memory>& memories() const override { return memories_; }
  const std::vector<Variable>& variables() const override { return variables_; }
  ExecResult<std::string> KernelPtx(std::size_t index) const override;

 private:
  CubinSource() = default;

  void AddMemories();
  void AddVariables();
  void AddKernels();

  std::string code_;
  sass::Cubin cubin_;  // points into code_
  std::vector<KernelInfo> kernels_;
  std::vector<Memory> memories_;
  std::vector<Variable> variables_;
};

}  // namespace torpor::emulator

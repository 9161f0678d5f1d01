// The tests of kernels in tests/emulator/exec, whose kernels are machine code here.
#include <fstream>
#include <iterator>

#include "emulator/driver/module/cubin_source.h"
#include "tests/emulator/exec/kernel_test.h"

namespace torpor::emulator {

ExecResult<std::unique_ptr<Program>> LoadKernels(const std::string& name, DeviceMemory& memory) {
  std::ifstream file(std::string(TORPOR_TEST_CUBIN_DIR) + "/" + name + ".cubin", std::ios::binary);
  auto source = CubinSource::Open(std::string(std::istreambuf_iterator<char>(file), {}));
  if (!source) return Failure<ExecError>{ExecError::kInvalidPtx, source.failure().message};
  return Program::Load(*source, memory, DeviceTraits{});
}

bool KernelsAreMachineCode() { return true; }

}  // namespace torpor::emulator

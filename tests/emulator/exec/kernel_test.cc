#include "tests/emulator/exec/kernel_test.h"

#include <fstream>
#include <iterator>

namespace torpor::emulator {

ExecResult<std::unique_ptr<Program>> LoadKernels(const std::string& name, DeviceMemory& memory) {
  std::ifstream file(std::string(TORPOR_TEST_PTX_DIR) + "/" + name + ".ptx");
  const std::string ptx(std::istreambuf_iterator<char>(file), {});
  return Program::Load(ptx, memory, DeviceTraits{});
}

bool KernelsAreMachineCode() { return false; }

}  // namespace torpor::emulator

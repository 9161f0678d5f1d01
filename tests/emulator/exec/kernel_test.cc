#include "tests/emulator/exec/kernel_test.h"

#include <fstream>
#include <iterator>

namespace torpor::emulator {

std::string ReadPtx(const std::string& name) {
  std::ifstream file(std::string(TORPOR_TEST_PTX_DIR) + "/" + name + ".ptx");
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace torpor::emulator

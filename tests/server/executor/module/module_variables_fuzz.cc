#include <cstddef>
#include <cstdint>
#include <span>

#include "server/executor/module/module_sharing.h"
#include "server/executor/module/module_variables.h"

// Names, however many symbols point at them, are bounded in number and in bytes; what code uses is
// looked for inside the bytes.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  torpor::executor::CodeMayUseVariables(std::span(data, size), 75);
  const auto names = torpor::executor::VariablesOf(std::span(data, size));
  if (!names.ok()) return 0;
  std::size_t bytes = 0;
  for (const std::string& name : *names) bytes += name.size() + 1;
  if (names->size() > (1U << 16) || bytes > (16U << 20)) __builtin_trap();
  return 0;
}

#include <cstddef>
#include <cstdint>
#include <span>

#include "server/executor/image_check.h"
#include "server/executor/module_variables.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::uint8_t> image(data, size);
  (void)torpor::executor::CheckImage(image);
  for (const std::string& name : torpor::executor::VariablesOf(image))
    if (name.size() > size) __builtin_trap();
  return 0;
}

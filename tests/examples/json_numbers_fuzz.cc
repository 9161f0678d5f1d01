#include <cstddef>
#include <cstdint>
#include <string_view>

#include "examples/service/json_numbers.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)torpor::examples::ParseNumbers({reinterpret_cast<const char*>(data), size});
  return 0;
}

#include <cstddef>
#include <cstdint>
#include <string>

#include "tools/loadgen/workload.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  (void)torpor::loadgen::ParseWorkload(text, "/nowhere", "127.0.0.1:1");
  return 0;
}

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tools/loadgen/answers.h"

// Servers may answer with anything.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const torpor::loadgen::Exchange exchange{"", R"({"label":3,"p":[0.5,1.0],"inner":{"name":"x"}})",
                                           1e-3};
  (void)torpor::loadgen::CheckAnswer(exchange, text);
  (void)torpor::loadgen::ParseExchange(text);
  return 0;
}

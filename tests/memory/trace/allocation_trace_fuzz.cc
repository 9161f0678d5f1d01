#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "memory/trace/allocation_trace.h"

// Any bytes are a trace, which can be written and read again, or an error.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using torpor::memory::FormatTrace;
  using torpor::memory::ParseTrace;
  const auto trace = ParseTrace({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!trace.ok()) return 0;
  const auto again = ParseTrace(FormatTrace(*trace), "again");
  if (!again.ok() || *again != *trace) std::abort();
  return 0;
}

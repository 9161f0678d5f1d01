#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "tools/workload/rate_file.h"

// What is accepted is written to what is read back to the same.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using torpor::workload::FormatRates;
  using torpor::workload::ParseRates;
  const auto rates = ParseRates({reinterpret_cast<const char*>(data), size});
  if (!rates.ok()) return 0;
  const std::string written = FormatRates(*rates);
  const auto again = ParseRates(written);
  TORPOR_CHECK(again.ok() && FormatRates(*again) == written);
  return 0;
}

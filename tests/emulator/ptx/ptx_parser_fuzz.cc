// Parses arbitrary bytes, and analyses what parses.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "emulator/ptx/control_flow.h"
#include "emulator/ptx/lane_analysis.h"
#include "emulator/ptx/parser.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace torpor::ptx;
  const auto parsed = Parse({reinterpret_cast<const char*>(data), size});
  if (!parsed) return 0;
  for (const Function& function : parsed->functions) {
    if (!function.has_body || function.registers.size() > 4096) continue;
    const ControlFlow flow = BuildControlFlow(function);
    const LaneAnalysis analysis(*parsed, function, flow, {32, true, true}, 16);
  }
  return 0;
}

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/scheduler/scheduler_world.h"

// Whatever happens outside, in whatever order, the scheduler keeps its promises.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 4096) return 0;
  const std::uint8_t* const end = data + size;
  const std::vector<std::string_view> setups = torpor::scheduler::SetupNames();
  const std::uint8_t first = size > 0 ? data[0] : 0;
  torpor::scheduler::SchedulerWorld world(
      {.setup = std::string(setups[first % setups.size()]), .keeps_replicas = first >= 128},
      [&]() -> std::uint32_t { return data < end ? *data++ : 7; });
  std::string error;
  while (data < end && error.empty()) error = world.Step();
  if (error.empty()) error = world.Finish();
  if (error.empty()) return 0;
  std::fprintf(stderr, "%s\n", error.c_str());
  std::abort();
}

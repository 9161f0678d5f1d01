#include "emulator/exec/runtime/mbarrier_calls.h"

#include <algorithm>
#include <cstring>

#include "emulator/exec/interface/mbarrier.h"

namespace torpor::emulator {
namespace {

// Applies the operation and returns the result of the lane.
std::uint64_t Apply(Mbarrier& barrier, MbarrierOperation operation, std::uint64_t argument) {
  const std::uint64_t before = barrier.ToWord();
  const auto number = static_cast<std::uint32_t>(argument);
  switch (operation) {
    case MbarrierOperation::kInit:
      barrier = {};
      barrier.expected = barrier.pending = std::min(number, Mbarrier::kMaxCount);
      break;
    case MbarrierOperation::kInvalidate:
      barrier = {};
      break;
    case MbarrierOperation::kArrive:
      barrier.Arrive(number);
      break;
    case MbarrierOperation::kDrop:
      barrier.Drop(number);
      break;
    case MbarrierOperation::kExpect:
      barrier.Expect(number);
      break;
    case MbarrierOperation::kComplete:
      barrier.Complete(number);
      break;
    case MbarrierOperation::kTestState:
      return static_cast<std::uint64_t>(Mbarrier::FromWord(argument).odd != barrier.odd);
    case MbarrierOperation::kTestParity:
      return static_cast<std::uint64_t>((number % 2 != 0) != barrier.odd);
  }
  return before;
}

}  // namespace

void RunMbarrier(WarpContext* /*context*/, std::uint32_t mask, std::uint32_t operation,
                 const std::uint64_t* addresses, const std::uint64_t* arguments,
                 std::uint64_t* results) {
  for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    if (((mask >> lane) & 1) == 0) continue;
    auto* const place = reinterpret_cast<void*>(addresses[lane]);
    std::uint64_t word = 0;
    std::memcpy(&word, place, sizeof(word));
    Mbarrier barrier = Mbarrier::FromWord(word);
    results[lane] = Apply(barrier, static_cast<MbarrierOperation>(operation), arguments[lane]);
    word = barrier.ToWord();
    std::memcpy(place, &word, sizeof(word));
  }
}

}  // namespace torpor::emulator

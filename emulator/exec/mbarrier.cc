#include "emulator/exec/mbarrier.h"

#include <algorithm>
#include <cstring>

namespace torpor::emulator {
namespace {

constexpr unsigned kCountBits = 20;
constexpr unsigned kTransactionBits = 21;
static_assert(Mbarrier::kPendingShift == kCountBits);
constexpr unsigned kTransactionShift = 2 * kCountBits;
constexpr std::uint64_t kTransactionMask = (std::uint64_t{1} << kTransactionBits) - 1;

// What the operation leaves in its result.
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

Mbarrier Mbarrier::FromWord(std::uint64_t word) {
  Mbarrier barrier;
  barrier.expected = static_cast<std::uint32_t>(word) & kMaxCount;
  barrier.pending = static_cast<std::uint32_t>(word >> kPendingShift) & kMaxCount;
  const std::uint64_t field = (word >> kTransactionShift) & kTransactionMask;
  // Two's complement.
  const std::uint64_t sign = std::uint64_t{1} << (kTransactionBits - 1);
  barrier.transactions = static_cast<std::int32_t>(static_cast<std::int64_t>(field ^ sign) -
                                                   static_cast<std::int64_t>(sign));
  barrier.odd = (word >> 63) != 0;
  return barrier;
}

std::uint64_t Mbarrier::ToWord() const {
  const std::uint64_t field = static_cast<std::uint64_t>(transactions) & kTransactionMask;
  return expected | std::uint64_t{pending} << kPendingShift | field << kTransactionShift |
         std::uint64_t{odd} << 63;
}

void Mbarrier::Arrive(std::uint32_t count) {
  pending -= std::min(pending, count);
  EndPhaseIfComplete();
}

void Mbarrier::Drop(std::uint32_t count) {
  expected -= std::min(expected, count);
  Arrive(count);
}

void Mbarrier::Expect(std::uint32_t bytes) {
  transactions += static_cast<std::int32_t>(bytes & kMaxCount);
}

void Mbarrier::Complete(std::uint32_t bytes) {
  transactions -= static_cast<std::int32_t>(bytes & kMaxCount);
  EndPhaseIfComplete();
}

void Mbarrier::EndPhaseIfComplete() {
  if (pending != 0 || transactions != 0) return;
  odd = !odd;
  pending = expected;
}

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

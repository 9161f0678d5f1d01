#include "emulator/exec/interface/mbarrier.h"

#include <algorithm>

namespace torpor::emulator {
namespace {

constexpr unsigned kCountBits = 20;
constexpr unsigned kTransactionBits = 21;
static_assert(Mbarrier::kPendingShift == kCountBits);
constexpr unsigned kTransactionShift = 2 * kCountBits;
constexpr std::uint64_t kTransactionMask = (std::uint64_t{1} << kTransactionBits) - 1;

}  // namespace

// Fields, from the lowest bit: expected, pending, transactions in two's complement, parity.
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
}  // namespace torpor::emulator

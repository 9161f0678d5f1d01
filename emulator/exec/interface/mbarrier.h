#pragma once

#include <cstdint>

namespace torpor::emulator {

// An mbarrier object of PTX: a 64-bit word of shared memory. A phase ends when all expected
// arrivals and all expected bytes have come. Not thread-safe: only warps of the same block reach an
// mbarrier, and all run on the same host thread.
struct Mbarrier {
  static constexpr std::uint32_t kMaxCount = (1U << 20) - 1;
  static constexpr unsigned kPendingShift = 20;  // where `pending` lies in the word

  std::uint32_t expected = 0;     // arrivals a phase
  std::uint32_t pending = 0;      // arrivals that this phase lacks
  std::int32_t transactions = 0;  // bytes that it lacks
  bool odd = false;               // the parity of the phase

  static Mbarrier FromWord(std::uint64_t word);
  std::uint64_t ToWord() const;

  void Arrive(std::uint32_t count);
  void Drop(std::uint32_t count);  // arrives, and is expected no more
  void Expect(std::uint32_t bytes);
  void Complete(std::uint32_t bytes);

 private:
  void EndPhaseIfComplete();
};

}  // namespace torpor::emulator

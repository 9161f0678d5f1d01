#include "server/repository/session_addresses.h"

namespace torpor::server {
namespace {

constexpr Bytes kAlignment = 1 * kGiB;
// Position-independent programs are loaded from 0x5500'0000'0000 on.
constexpr std::uint64_t kEnd = 0x5400'0000'0000;
// ThreadSanitizer leaves programs the addresses below, and some far above.
constexpr std::uint64_t kLowEnd = 0x80'0000'0000;

constexpr std::uint64_t EndFor(std::uint64_t base) { return base < kLowEnd ? kLowEnd : kEnd; }

}  // namespace

SessionAddresses::SessionAddresses(std::uint64_t base)
    : base_(RoundUp(base, kAlignment)), free_(0) {
  if (base_ < EndFor(base_)) free_.Add({0, EndFor(base_) - base_});
}

std::optional<std::uint64_t> SessionAddresses::Reserve(Bytes bytes) {
  const auto block = free_.Take(RoundUp(bytes, kAlignment), kAlignment);
  if (!block) return std::nullopt;
  return base_ + block->offset;
}

void SessionAddresses::Release(std::uint64_t address, Bytes bytes) {
  free_.Add({address - base_, RoundUp(bytes, kAlignment)});
}

}  // namespace torpor::server

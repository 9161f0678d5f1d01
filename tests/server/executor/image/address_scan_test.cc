#include "server/executor/image/address_scan.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace torpor::executor {
namespace {

constexpr std::uint64_t kBase = 0x2000'0000'0000;
constexpr AddressRange kRange = {kBase, 4096};

bool Holds(const std::vector<std::uint64_t>& words) {
  std::vector<std::uint8_t> bytes(words.size() * sizeof words[0]);
  if (!words.empty()) std::memcpy(bytes.data(), words.data(), bytes.size());
  return HoldsAddress(bytes, kBase, kRange);
}

TEST(AddressScan, FindsAddressesOfTheMemoryOnly) {
  EXPECT_TRUE(Holds({kBase}));
  EXPECT_TRUE(Holds({1, 2, kBase + 4095}));
  EXPECT_FALSE(Holds({kBase + 4096}));
  EXPECT_FALSE(Holds({kBase - 1, 0, ~std::uint64_t{0}}));
  EXPECT_FALSE(Holds({}));
}

TEST(AddressScan, LooksAtEveryWord) {
  for (const std::size_t count : {1, 63, 64, 65, 200}) {
    for (std::size_t at = 0; at < count; ++at) {
      std::vector<std::uint64_t> words(count, 7);
      EXPECT_FALSE(Holds(words));
      words[at] = kBase + 8;
      EXPECT_TRUE(Holds(words)) << at << " of " << count;
    }
  }
}

TEST(AddressScan, BytesThatAreNoWordAreNoAddress) {
  const std::uint64_t address = kBase + 8;
  std::vector<std::uint8_t> bytes(15);
  std::memcpy(bytes.data() + 7, &address, sizeof address);
  EXPECT_FALSE(HoldsAddress(bytes, kBase, kRange)) << "pointers are aligned";
  EXPECT_TRUE(HoldsAddress(bytes, kBase + 1, kRange)) << "as they lie on the device";
  std::memcpy(bytes.data(), &address, sizeof address);
  EXPECT_FALSE(HoldsAddress(std::span(bytes).first(7), kBase, kRange));
  EXPECT_FALSE(HoldsAddress(std::span(bytes).first(3), kBase + 1, kRange));
}

}  // namespace
}  // namespace torpor::executor

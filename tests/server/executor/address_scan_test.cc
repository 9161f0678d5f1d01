#include "server/executor/address_scan.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace torpor::executor {
namespace {

constexpr std::uint64_t kBase = 0x2000'0000'0000;

bool Holds(const std::vector<std::uint64_t>& words) {
  memory::ExtentSet memory;
  memory.Add({0, 4096});
  memory.Add({1 << 20, (1 << 20) + 512});
  std::vector<std::uint8_t> bytes(words.size() * sizeof words[0]);
  if (!words.empty()) std::memcpy(bytes.data(), words.data(), bytes.size());
  return HoldsAddress(bytes, kBase, memory);
}

TEST(AddressScan, FindsAddressesOfTheMemoryOnly) {
  EXPECT_TRUE(Holds({kBase}));
  EXPECT_TRUE(Holds({1, 2, kBase + 4095}));
  EXPECT_TRUE(Holds({kBase + (1 << 20) + 511}));
  EXPECT_FALSE(Holds({kBase + 4096})) << "between allocations";
  EXPECT_FALSE(Holds({kBase + (1 << 20) + 512}));
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
  memory::ExtentSet memory;
  memory.Add({0, 4096});
  const std::uint64_t address = kBase + 8;
  std::vector<std::uint8_t> bytes(15);
  std::memcpy(bytes.data() + 7, &address, sizeof address);
  EXPECT_FALSE(HoldsAddress(bytes, kBase, memory)) << "pointers are aligned";
  std::memcpy(bytes.data(), &address, sizeof address);
  EXPECT_FALSE(HoldsAddress(std::span(bytes).first(7), kBase, memory));
  EXPECT_FALSE(HoldsAddress(bytes, kBase, {}));
}

}  // namespace
}  // namespace torpor::executor

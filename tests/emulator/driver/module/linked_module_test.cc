#include "emulator/driver/module/linked_module.h"

#include <gtest/gtest.h>

#include <cstring>

namespace torpor::emulator {
namespace {

const std::vector<PtxPart> kParts = {{"a", "text of a"}, {"", std::string("with\0NUL", 8)}};

TEST(LinkedModuleTest, GivesBackWhatWentIn) {
  const std::vector<char> module = EncodeLinkedModule(kParts);
  const auto parts = DecodeLinkedModule(module.data());
  ASSERT_TRUE(parts.has_value());
  ASSERT_EQ(parts->size(), kParts.size());
  for (std::size_t i = 0; i < kParts.size(); ++i) {
    EXPECT_EQ((*parts)[i].name, kParts[i].name);
    EXPECT_EQ((*parts)[i].text, kParts[i].text);
  }
  EXPECT_TRUE(DecodeLinkedModule(EncodeLinkedModule({}).data())->empty());
}

TEST(LinkedModuleTest, LengthsThatLieAreRefused) {
  const std::vector<char> module = EncodeLinkedModule(kParts);
  for (const std::size_t length_at : {std::size_t{16}, std::size_t{16 + 8 + 1}}) {
    std::vector<char> damaged = module;
    const std::uint64_t lie = ~std::uint64_t{0};
    std::memcpy(damaged.data() + length_at, &lie, sizeof lie);
    EXPECT_FALSE(DecodeLinkedModule(damaged.data()).has_value()) << length_at;
  }
  std::vector<char> shorter = module;
  const std::uint64_t bytes = module.size() - 16 - 3;
  std::memcpy(shorter.data() + 8, &bytes, sizeof bytes);
  EXPECT_FALSE(DecodeLinkedModule(shorter.data()).has_value());
}

}  // namespace
}  // namespace torpor::emulator

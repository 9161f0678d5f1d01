#include "emulator/exec/texture/texture_table.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace torpor::emulator {
namespace {

std::shared_ptr<const TextureObject> ATexture() {
  return std::make_shared<const TextureObject>(Texture{});
}

TEST(TextureTable, FindsWhatLives) {
  TextureTable& table = TextureTable::Instance();
  const auto texture = ATexture();
  const std::uint64_t handle = table.Add(texture);
  EXPECT_EQ(table.Find(handle), texture.get());
  EXPECT_TRUE(table.Remove(handle));
  EXPECT_EQ(table.Find(handle), nullptr);
  EXPECT_FALSE(table.Remove(handle));
}

TEST(TextureTable, NumbersOfEveryKindAreNoObjects) {
  TextureTable& table = TextureTable::Instance();
  const std::uint64_t handle = table.Add(ATexture());
  for (const std::uint64_t wild :
       {std::uint64_t{0}, std::uint64_t{1}, handle + 1, handle ^ (std::uint64_t{1} << 25),
        handle ^ (std::uint64_t{1} << 45), handle & 0xfffff, ~std::uint64_t{0}}) {
    EXPECT_EQ(table.Find(wild), nullptr) << std::hex << wild;
    EXPECT_FALSE(table.Remove(wild));
  }
  EXPECT_TRUE(table.Remove(handle));
}

TEST(TextureTable, ASlotsNextObjectHasAnotherHandle) {
  TextureTable& table = TextureTable::Instance();
  std::set<std::uint64_t> handles;
  for (int i = 0; i < 3000; ++i) {
    const std::uint64_t handle = table.Add(ATexture());
    EXPECT_TRUE(handles.insert(handle).second);
    EXPECT_TRUE(table.Remove(handle));
  }
}

TEST(TextureTable, WhatAKernelFoundLivesUntilItEnds) {
  TextureTable& table = TextureTable::Instance();
  auto texture = ATexture();
  const std::weak_ptr<const TextureObject> watch = texture;
  const std::uint64_t handle = table.Add(std::move(texture));
  {
    const TextureTable::Use early(table);
    EXPECT_TRUE(table.Remove(handle));
    const TextureTable::Use late(table);
    EXPECT_FALSE(watch.expired());
  }
  EXPECT_TRUE(watch.expired());
}

TEST(TextureTable, HoldsMoreThanAPage) {
  TextureTable& table = TextureTable::Instance();
  constexpr std::size_t kMany = 2500;
  std::vector<std::uint64_t> handles;
  handles.reserve(kMany);
  for (std::size_t i = 0; i < kMany; ++i) handles.push_back(table.Add(ATexture()));
  for (const std::uint64_t handle : handles) EXPECT_NE(table.Find(handle), nullptr);
  for (const std::uint64_t handle : handles) EXPECT_TRUE(table.Remove(handle));
}

}  // namespace
}  // namespace torpor::emulator

#include "server/executor/image/image_addresses.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "memory/range_allocator.h"
#include "server/executor/image/arena_backing.h"
#include "tests/server/executor/gpu/fake_cuda.h"

namespace torpor::executor {
namespace {

constexpr std::uint64_t kImageBase = 0x2000'0000'0000;
constexpr Bytes kImageBytes = 64 * kMiB;

// With an allocation in the image's second chunk.
class ImageAddressesTest : public testing::Test {
 protected:
  ImageAddressesTest() {
    addresses_.NoteAllocation(kAllocation);
    EXPECT_TRUE(backing_.Back({&kAllocation, 1}).ok());
    addresses_.Refresh();
  }

  static std::vector<std::uint8_t> BytesWith(std::uint64_t word) {
    std::vector<std::uint8_t> bytes(24);
    std::memcpy(bytes.data() + 8, &word, sizeof word);
    return bytes;
  }
  bool MayBePointer(std::uint64_t word) const {
    return addresses_.ArePointersIn(BytesWith(word), kImageBase);
  }
  bool MayBeAnyPointer(std::uint64_t word) const {
    return addresses_.AreAnyPointersIn(BytesWith(word), kImageBase);
  }

  static constexpr memory::Extent kAllocation = {FakeCuda::kChunk, 2 * FakeCuda::kChunk};
  FakeCuda cuda_;
  std::unique_ptr<Device> device_ = *Device::Open(cuda_.driver(), 0);
  std::unique_ptr<PhysicalPool> pool_ =
      *PhysicalPool::Create(*device_, 8 * FakeCuda::kChunk, FakeCuda::kChunk);
  std::unique_ptr<ArenaMemory> arena_ = *ArenaMemory::Create(*device_, *pool_);
  ArenaBacking backing_{*arena_, {1}};
  ImageAddresses addresses_{backing_, kImageBase, kImageBytes};
};

TEST_F(ImageAddressesTest, ContainsRangesInside) {
  EXPECT_TRUE(addresses_.Contains(kImageBase, kImageBytes));
  EXPECT_TRUE(addresses_.Contains(kImageBase + kImageBytes, 0));
  EXPECT_FALSE(addresses_.Contains(kImageBase + 1, kImageBytes));
  EXPECT_FALSE(addresses_.Contains(kImageBase - 1, 1));
  EXPECT_FALSE(addresses_.Contains(kImageBase + 1, ~Bytes{0}));
}

TEST_F(ImageAddressesTest, PointersLeadWhereTheLastRefreshSaw) {
  const CUdeviceptr place = backing_.AddressOf(kAllocation.begin);
  EXPECT_EQ(addresses_.Translate(kImageBase + kAllocation.begin + 5), place + 5);
  EXPECT_EQ(addresses_.Translate(5), 0u);
  ASSERT_TRUE(backing_.Release(kAllocation, {}).ok());
  EXPECT_EQ(addresses_.Translate(kImageBase + kAllocation.begin), place);
  EXPECT_EQ(addresses_.TranslateForSibling(kImageBase + kAllocation.begin), 0u);
  addresses_.Refresh();
  EXPECT_EQ(addresses_.Translate(kImageBase + kAllocation.begin), 0u);
}

TEST_F(ImageAddressesTest, WordsMayBePointersToAllocationsAndALittleBehind) {
  EXPECT_TRUE(MayBePointer(kImageBase + kAllocation.begin));
  EXPECT_TRUE(MayBePointer(kImageBase + kAllocation.end + memory::RangeAllocator::kGuard - 1));
  EXPECT_FALSE(MayBePointer(kImageBase + kAllocation.begin - 1));
  EXPECT_FALSE(MayBePointer(kImageBase + kAllocation.end + memory::RangeAllocator::kGuard));
}

TEST_F(ImageAddressesTest, AddressesOfTheGpuAreOthers) {
  const CUdeviceptr place = backing_.AddressOf(kAllocation.begin);
  EXPECT_FALSE(MayBePointer(place));
  EXPECT_TRUE(MayBeAnyPointer(place));
  EXPECT_TRUE(MayBeAnyPointer(kImageBase + kAllocation.begin));
  EXPECT_FALSE(MayBeAnyPointer(5));
}

}  // namespace
}  // namespace torpor::executor

// Images some of whose blocks lie in the tenant's file.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/server/executor/image/device_image_fixture.h"
#include "tests/server/executor/image/in_order.h"

namespace torpor::executor {
namespace {

constexpr Bytes kBlock = wire::kImageBlockBytes;
constexpr std::size_t kPlace = 100;

class TenantBlocksTest : public DeviceImageTest {
 protected:
  void SetUp() override {
    options_.keeps_checkpoints = true;
    DeviceImageTest::SetUp();
    std::memset(host_, 7, 4 * kBlock);
    std::memset(shared(), 8, 2 * kBlock);
    // Where the image's own bytes were.
    std::memset(host_ + kBlock, 0, 2 * kBlock);
    for (const std::size_t i : {0, 1}) states_->Move(1 + i, memory::TenantHome(kPlace + i));
  }

  std::uint8_t* shared() const { return tenant_->mapping().data() + kPlace * kBlock; }
  void Load() { ASSERT_TRUE(image_->SwapIn(InOrder({{0, 4 * kBlock}})).ok()); }
  bool IsSharedAsBefore() const {
    return shared()[0] == 8 && std::memcmp(shared(), shared() + 1, 2 * kBlock - 1) == 0;
  }
};

TEST_F(TenantBlocksTest, ComeFromThere) {
  Load();
  EXPECT_EQ(gpu(kBlock - 1)[0], 7);
  EXPECT_EQ(gpu(kBlock)[0], 8);
  EXPECT_EQ(gpu(3 * kBlock - 1)[0], 8);
  EXPECT_EQ(gpu(3 * kBlock)[0], 7);
  EXPECT_TRUE(cuda_.IsRegistered(shared()));
}

TEST_F(TenantBlocksTest, AreRegisteredOnceForAllImages) {
  Load();
  const std::size_t pieces = cuda_.registered_pieces();
  ImageFiles files = NewImageFiles(kRange);
  files.tenant = tenant_;
  StatesOf(files).Move(0, memory::TenantHome(kPlace));
  constexpr std::uint64_t kOther = kBase + 2 * kRange;
  DeviceImage other(*device_, *MappedBacking::Open(*device_, *pool_, kOther, kRange), hasher_,
                    kOther, kRange, std::move(files), options_);
  ASSERT_TRUE(other.SwapIn(InOrder({{0, kBlock}})).ok());
  EXPECT_EQ(reinterpret_cast<const std::uint8_t*>(kOther)[5], 8);
  EXPECT_EQ(cuda_.registered_pieces(), pieces);
}

TEST_F(TenantBlocksTest, ArePinnedAhead) {
  while (*image_->PinNext()) {
  }
  EXPECT_TRUE(cuda_.IsRegistered(shared()));
  ASSERT_TRUE(image_->ReleaseHost({0, tenant_->mapping().bytes()}, HostPlaces::kTenantFile).ok());
  EXPECT_FALSE(cuda_.IsRegistered(shared()));
}

TEST_F(TenantBlocksTest, AnUploadLeavesTheOthersAlone) {
  Load();
  const std::vector<std::uint8_t> bytes(10, 9);
  ASSERT_TRUE(image_->uploads().Save(kBase + 2 * kBlock - 5, bytes).ok());
  EXPECT_EQ(states_->home(1), memory::kOwnPlace);
  EXPECT_EQ(states_->home(2), memory::kOwnPlace);
  EXPECT_EQ((*bytes_)[kBlock], 8) << "the rest of the block";
  EXPECT_EQ((*bytes_)[2 * kBlock - 5], 9);
  EXPECT_EQ((*bytes_)[2 * kBlock + 4], 9);
  EXPECT_EQ((*bytes_)[2 * kBlock + 5], 8);
  EXPECT_TRUE(IsSharedAsBefore());
}

TEST_F(TenantBlocksTest, AnUploadBehindTheStreamLeavesTheOthersAlone) {
  Load();
  gpu(kBlock + 3)[0] = 9;
  ASSERT_TRUE(image_->uploads().SaveBehind(stream_, kBase + kBlock + 3, 1).ok());
  EXPECT_EQ((*bytes_)[kBlock + 3], 9);
  EXPECT_EQ((*bytes_)[kBlock + 4], 8);
  EXPECT_TRUE(IsSharedAsBefore());
}

TEST_F(TenantBlocksTest, AWriteBackInPlaceGoesToTheOwnPlace) {
  Load();
  image_->MarkDirty();
  gpu(kBlock + 3)[0] = 9;
  ASSERT_TRUE(image_->WriteBack(stream_).ok());
  EXPECT_EQ(states_->home(1), memory::kOwnPlace);
  EXPECT_EQ((*bytes_)[kBlock + 3], 9);
  EXPECT_EQ((*bytes_)[kBlock + 4], 8);
  EXPECT_TRUE(IsSharedAsBefore());
}

TEST_F(TenantBlocksTest, TheLastCheckpointIsThereUntilTheNext) {
  Load();
  image_->MarkDirty();
  ASSERT_TRUE(image_->WriteBack(stream_).ok());
  image_->CommitCheckpoint(1);
  for (const std::size_t i : {0, 1}) states_->Move(1 + i, memory::TenantHome(kPlace + i));
  gpu(kBlock + 3)[0] = 9;
  image_->MarkDirty();
  ASSERT_TRUE(image_->WriteBack(stream_, 2 * kBlock).ok());
  EXPECT_EQ(states_->home(1), memory::kOwnPlace) << "no place in the annex is needed";
  EXPECT_EQ((*bytes_)[kBlock + 3], 9);
  // The writer dies.
  image_->ForgetChanges();
  ASSERT_TRUE(image_->Drop().ok());
  Load();
  EXPECT_EQ(states_->home(1), memory::TenantHome(kPlace));
  EXPECT_EQ(gpu(kBlock + 3)[0], 8);
  EXPECT_TRUE(IsSharedAsBefore());
}

TEST_F(TenantBlocksTest, WithoutTheFileAnImageDoesNotCome) {
  ImageFiles files = NewImageFiles(kRange);
  StatesOf(files).Move(0, memory::TenantHome(kPlace));
  constexpr std::uint64_t kOther = kBase + 2 * kRange;
  DeviceImage other(*device_, *MappedBacking::Open(*device_, *pool_, kOther, kRange), hasher_,
                    kOther, kRange, std::move(files), options_);
  EXPECT_TRUE(absl::IsDataLoss(other.SwapIn(InOrder({{0, kBlock}})).status()));
}

}  // namespace
}  // namespace torpor::executor

#include "server/repository/tenant_blocks.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace torpor::server {
namespace {

using memory::EqualRun;

constexpr Bytes kBlock = wire::kImageBlockBytes;
constexpr SessionFiles::Sizes kSizes = {.image = kGiB, .host_arena = kMiB, .window = kMiB};
constexpr auto kImage = wire::SharedMemory::kImage;

class TenantBlocksTest : public testing::Test {
 protected:
  TenantBlocksTest() { files_->SetTenantFile(tenant_); }

  // Blocks from `first` on whose bytes are their numbers, uploaded and hashed.
  void Upload(std::size_t first, std::size_t count) {
    MappedStates mapped = States();
    mapped.states().NoteUpload({first * kBlock, (first + count) * kBlock});
    for (std::size_t block = first; block < first + count; ++block) {
      ASSERT_TRUE(files_->file(kImage).Write(block * kBlock, BytesOf(block)).ok());
      mapped.states().SetInStep(block, HashOf(block));
    }
  }
  MappedStates States() const { return files_->MapStates({0, 256 * kBlock}).value(); }
  static std::vector<std::uint8_t> BytesOf(std::size_t number) {
    return std::vector<std::uint8_t>(kBlock, static_cast<std::uint8_t>(number));
  }
  static std::uint64_t HashOf(std::size_t number) { return (number + 1) << 8; }
  ImageBlockList List() const { return ListBlocks(*files_, {{0, 256 * kBlock}}).value(); }
  std::vector<EqualRun> Move(const std::vector<EqualRun>& runs) const {
    return MoveToTenantFile(*files_, runs).value().runs;
  }

  const std::shared_ptr<MemoryFile> tenant_ = SessionFiles::CreateTenantFile(kGiB).value();
  const std::unique_ptr<SessionFiles> files_ = SessionFiles::Create(kSizes).value();
};

TEST_F(TenantBlocksTest, UploadedBlocksOfKnownContentAreListed) {
  Upload(200, 4);
  MappedStates mapped = States();
  mapped.states().NoteUpload({201 * kBlock, 201 * kBlock + 1});                // not hashed yet
  mapped.states().NoteOverwritten(202), mapped.states().SetInStep(202, 1024);  // by the GPU
  const ImageBlockList list = List();
  ASSERT_EQ(list.uploaded.size(), 2u);
  EXPECT_EQ(list.uploaded[0].block, 200u);
  EXPECT_EQ(list.uploaded[1].block, 203u);
  EXPECT_NE(list.uploaded[0].content, list.uploaded[1].content);
  EXPECT_TRUE(list.at_tenant.empty());
}

TEST_F(TenantBlocksTest, CopiedBlocksMove) {
  Upload(10, 4);
  const std::uint64_t content = List().uploaded[0].content;
  const EqualRun run{10, 5000, 4};
  ASSERT_TRUE(CopyToTenantFile(*files_, run).ok());
  EXPECT_EQ(Move({run}), (std::vector<EqualRun>{run}));
  EXPECT_EQ(States().states().home(12), memory::TenantHome(5002));
  std::vector<std::uint8_t> read(kBlock);
  ASSERT_TRUE(tenant_->Read(5002 * kBlock, read).ok());
  EXPECT_EQ(read, BytesOf(12));
  const ImageBlockList list = List();
  EXPECT_TRUE(list.uploaded.empty());
  ASSERT_EQ(list.at_tenant.size(), 4u);
  EXPECT_EQ(list.at_tenant[0].place, 5000u);
  EXPECT_EQ(list.at_tenant[0].content, content);
}

TEST_F(TenantBlocksTest, BlocksMoveFromTheAnnexAndLeaveBothPlaces) {
  Upload(10, 2);
  files_->checkpoint().Commit(1);
  ASSERT_TRUE(files_->file(kImage).Write(kGiB + 7 * kBlock, BytesOf(99)).ok());
  States().states().Move(11, memory::AnnexHome(7));
  ASSERT_EQ(List().uploaded.size(), 2u);
  ASSERT_TRUE(CopyToTenantFile(*files_, {10, 100, 2}).ok());
  std::vector<std::uint8_t> read(kBlock);
  ASSERT_TRUE(tenant_->Read(101 * kBlock, read).ok());
  EXPECT_EQ(read, BytesOf(99));
  const MovedBlocks moved = MoveToTenantFile(*files_, {{10, 100, 2}}).value();
  EXPECT_EQ(moved.runs, (std::vector<EqualRun>{{10, 100, 2}}));
  EXPECT_EQ(moved.own.extents(), (std::vector<memory::Extent>{{10 * kBlock, 12 * kBlock}}));
  EXPECT_EQ(moved.annex.extents(), (std::vector<memory::Extent>{{7 * kBlock, 8 * kBlock}}));
  ASSERT_TRUE(GiveBackLeft(*files_, moved).ok());
  EXPECT_EQ(files_->resident_bytes(kImage), 0u);
}

// A hash can be forged.
TEST_F(TenantBlocksTest, BlocksOfOtherBytesStayWhateverTheirHashes) {
  Upload(10, 5);
  ASSERT_TRUE(CopyToTenantFile(*files_, {10, 100, 5}).ok());
  ASSERT_TRUE(files_->file(kImage).Write(13 * kBlock - 1, std::vector<std::uint8_t>{9}).ok());
  EXPECT_EQ(Move({{10, 100, 5}}), (std::vector<EqualRun>{{10, 100, 2}, {13, 103, 2}}));
  EXPECT_EQ(States().states().home(12), memory::kOwnPlace);
}

TEST_F(TenantBlocksTest, BlocksThatHaveChangedMeanwhileStay) {
  Upload(10, 3);
  ASSERT_TRUE(CopyToTenantFile(*files_, {10, 100, 3}).ok());
  files_->checkpoint().Commit(1);
  States().states().NoteChanged(11, memory::AnnexHome(0));
  EXPECT_EQ(Move({{10, 100, 3}}), (std::vector<EqualRun>{{10, 100, 1}, {12, 102, 1}}));
}

TEST_F(TenantBlocksTest, TheHomeThatACheckpointNeedsIsListed) {
  Upload(10, 1);
  files_->checkpoint().Commit(1);
  ASSERT_TRUE(CopyToTenantFile(*files_, {10, 100, 1}).ok());
  ASSERT_EQ(Move({{10, 100, 1}}).size(), 1u);
  States().states().NoteChanged(10, memory::kOwnPlace);
  const ImageBlockList list = List();
  ASSERT_EQ(list.at_tenant.size(), 1u);
  EXPECT_EQ(list.at_tenant[0].place, 100u);
  EXPECT_EQ(list.at_tenant[0].content, memory::BlockStates::kNoContent);
  files_->checkpoint().Commit(2);
  States().states().Retire(10);
  EXPECT_TRUE(List().at_tenant.empty());
}

}  // namespace
}  // namespace torpor::server

#include "server/controller/memory/block_sharing.h"

#include <algorithm>

#include "tests/server/controller/node_world.h"

namespace torpor::server {
namespace {

constexpr Bytes kBlock = wire::kImageBlockBytes;
constexpr Bytes kImageBytes = 6 * kMiB;
constexpr auto kImage = wire::SharedMemory::kImage;
constexpr auto kTenantFile = wire::SharedMemory::kTenantFile;

class BlockSharingTest : public NodeWorld {
 protected:
  // A session with kImageBytes of an image, all of whose blocks are uploaded, hashed and saved. The
  // blocks' bytes are numbers from `first` on.
  SessionPtr AddImage(std::size_t first) {
    SessionPtr session = AddSession("a");
    begins_[session->id] = host_.segments.AllocateDevice(*session, kImageBytes)->offset;
    Fill(session, first);
    return session;
  }
  void Fill(const SessionPtr& session, std::size_t first) {
    const Bytes begin = begins_.at(session->id);
    MappedStates mapped = StatesOf(session);
    mapped.states().NoteUpload({begin - mapped.first_block() * kBlock,
                                begin + kImageBytes - mapped.first_block() * kBlock});
    for (std::size_t i = 0; i < kImageBytes / kBlock; ++i) {
      const std::size_t block = begin / kBlock + i - mapped.first_block();
      mapped.states().Move(block, memory::kOwnPlace);
      mapped.states().SetInStep(block, (first + i + 1) << 8);
      Write(session, i, BytesOf(first + i));
    }
    Save(session);
  }
  void Write(const SessionPtr& session, std::size_t block,
             const std::vector<std::uint8_t>& bytes) const {
    const Bytes at = begins_.at(session->id) + block * kBlock;
    EXPECT_TRUE(session->memory.files->file(kImage).Write(at, bytes).ok());
  }
  static void Save(const SessionPtr& session) {
    memory::Checkpoint checkpoint = session->memory.files->checkpoint();
    checkpoint.Commit(checkpoint.saved_command() + 1);
  }
  MappedStates StatesOf(const SessionPtr& session) const {
    const Bytes begin = begins_.at(session->id);
    return session->memory.files->MapStates({begin, begin + kImageBytes}).value();
  }
  static std::vector<std::uint8_t> BytesOf(std::size_t number) {
    std::vector<std::uint8_t> bytes(kBlock);
    for (std::size_t i = 0; i < kBlock; ++i) {
      bytes[i] = static_cast<std::uint8_t>(number * 31 + i / 256);
    }
    return bytes;
  }

  // Lets images rest, and all that follows end.
  void Rest() {
    for (int second = 0; second < 8; ++second) {
      loop_.Advance(std::chrono::seconds(1));
      host_.sharing.Look();
      Settle();
    }
  }
  void Close(const SessionPtr& session) {
    storage_.Remove(*session);
    tables_.sessions.Forget(*session);
    loop_.RunAll();
  }

  std::size_t SharedBlocks(const SessionPtr& session) const {
    const Bytes begin = begins_.at(session->id);
    MappedStates mapped = StatesOf(session);
    std::size_t shared = 0;
    for (std::size_t i = 0; i < kImageBytes / kBlock; ++i) {
      const std::size_t block = begin / kBlock + i - mapped.first_block();
      shared += memory::IsTenantHome(mapped.states().home(block)) ? 1 : 0;
    }
    return shared;
  }
  // Whether the image's bytes are numbers from `first` on, wherever they lie.
  bool Has(const SessionPtr& session, std::size_t first) const {
    const Bytes begin = begins_.at(session->id);
    MappedStates mapped = StatesOf(session);
    std::vector<std::uint8_t> read(kBlock);
    for (std::size_t i = 0; i < kImageBytes / kBlock; ++i) {
      const std::size_t block = begin / kBlock + i;
      const memory::BlockHome home = mapped.states().home(block - mapped.first_block());
      const auto file = memory::IsTenantHome(home) ? kTenantFile : kImage;
      const Bytes at = memory::PlaceOfHome(block, home) * kBlock;
      EXPECT_TRUE(session->memory.files->file(file).Read(at, read).ok());
      if (read != BytesOf(first + i)) return false;
    }
    return true;
  }
  static Bytes Pages(const SessionPtr& session, wire::SharedMemory what = kImage) {
    return session->memory.files->resident_bytes(what);
  }

  static constexpr std::size_t kAll = kImageBytes / kBlock;
  std::map<SessionId, Bytes> begins_;
};

TEST_F(BlockSharingTest, EqualImagesAreStoredOnce) {
  const SessionPtr first = AddImage(0);
  const SessionPtr second = AddImage(0);
  const SessionPtr third = AddImage(0);
  const Bytes before = host_.segments.host_memory().used;
  Rest();
  for (const SessionPtr& session : {first, second, third}) {
    EXPECT_EQ(SharedBlocks(session), kAll);
    EXPECT_TRUE(Has(session, 0));
    EXPECT_EQ(Pages(session), 0u);
  }
  EXPECT_EQ(Pages(first, kTenantFile), kImageBytes);
  EXPECT_EQ(host_.sharing.figures().stored, kImageBytes);
  EXPECT_EQ(host_.sharing.figures().used, 3 * kImageBytes);
  EXPECT_EQ(host_.sharing.ShareOf(*second), kImageBytes / 3);
  EXPECT_EQ(host_.segments.host_memory().used, before - 2 * kImageBytes);
}

TEST_F(BlockSharingTest, RunsAreFoundWhereverTheyLie) {
  const SessionPtr first = AddImage(0);
  const SessionPtr second = AddImage(40);  // 56 of its blocks are the other's last
  Rest();
  EXPECT_EQ(SharedBlocks(first), kAll - 40);
  EXPECT_EQ(SharedBlocks(second), kAll - 40);
  EXPECT_TRUE(Has(first, 0) && Has(second, 40));
}

TEST_F(BlockSharingTest, OtherTenantsBlocksAreTheirOwn) {
  AddImage(0);
  tables_.instances.Find("a")->function->config.tenant = "other";
  const SessionPtr second = AddImage(0);
  Rest();
  EXPECT_EQ(SharedBlocks(second), 0u);
  EXPECT_EQ(host_.sharing.figures().used, 0u);
}

TEST_F(BlockSharingTest, ABlockOfOtherBytesIsNotShared) {
  const SessionPtr first = AddImage(0);
  const SessionPtr second = AddImage(0);
  Write(second, 50, BytesOf(1000));  // of the same hash
  Rest();
  EXPECT_EQ(SharedBlocks(first), kAll);
  EXPECT_EQ(SharedBlocks(second), kAll - 1);
  Fill(second, 0);
  Rest();
  EXPECT_EQ(SharedBlocks(second), kAll) << "once its bytes are the same";
}

TEST_F(BlockSharingTest, ExecutorsLetGoBeforeThePagesLeave) {
  const SessionPtr first = AddImage(0);
  const SessionPtr second = AddImage(0);
  loop_.Advance(std::chrono::seconds(1));
  host_.sharing.Look();
  loop_.Advance(kRest);
  host_.sharing.Look();
  loop_.RunAll();
  // One of the two moves first; the executors are asked.
  const v1::DaemonMessage::ReleaseImage& asked = Operation(0).release_image();
  const SessionPtr moving = tables_.sessions.Find(SessionId{asked.session_id()});
  EXPECT_EQ(asked.extent().offset(), begins_.at(moving->id));
  EXPECT_EQ(asked.extent().bytes(), kImageBytes);
  EXPECT_EQ(asked.places(), v1::DaemonMessage::ReleaseImage::OWN);
  EXPECT_EQ(Pages(moving), kImageBytes);
  Answer(0, absl::InternalError("the driver refuses"));
  Answer(1);
  loop_.RunAll();
  EXPECT_EQ(Pages(moving), kImageBytes) << "the executor would go on copying from them";
  EXPECT_TRUE(Has(moving, 0));
}

TEST_F(BlockSharingTest, ImagesInUseAreLeftAlone) {
  const SessionPtr first = AddImage(0);
  const SessionPtr second = AddImage(0);
  first->lease.id = LeaseId{1};
  Rest();
  EXPECT_EQ(SharedBlocks(first), 0u);
  EXPECT_EQ(SharedBlocks(second), 0u) << "nobody to share with";
  first->lease.id = {};
  Rest();
  EXPECT_EQ(SharedBlocks(first), kAll);
  EXPECT_EQ(SharedBlocks(second), kAll);
}

TEST_F(BlockSharingTest, WhatNobodyUsesIsGivenBack) {
  const SessionPtr first = AddImage(0);
  const SessionPtr second = AddImage(0);
  const SessionPtr other = AddImage(500);
  Rest();
  ASSERT_EQ(Pages(other, kTenantFile), kImageBytes);
  Close(first);
  Rest();
  EXPECT_TRUE(Has(second, 0));
  EXPECT_EQ(Pages(other, kTenantFile), kImageBytes);
  Fill(second, 800);  // as an executor does: blocks go back to their own places
  Rest();
  EXPECT_EQ(host_.sharing.figures().used, 0u);
  EXPECT_EQ(host_.sharing.figures().stored, 0u);
  EXPECT_EQ(Pages(other, kTenantFile), 0u);
}

TEST_F(BlockSharingTest, PlacesServeAgain) {
  const SessionPtr first = AddImage(0);
  const SessionPtr second = AddImage(0);
  Rest();
  Fill(first, 500), Fill(second, 500);
  Rest();
  EXPECT_EQ(SharedBlocks(first), kAll);
  EXPECT_TRUE(Has(first, 500) && Has(second, 500));
}

TEST_F(BlockSharingTest, TheTenantsFileGoesWithItsLastSession) {
  const SessionPtr first = AddImage(0);
  const SessionPtr second = AddImage(0);
  Rest();
  const Bytes none = host_.segments.host_memory().tenant_files;
  EXPECT_EQ(none, kImageBytes);
  Close(first), Close(second);
  EXPECT_EQ(host_.segments.host_memory().tenant_files, 0u);
  EXPECT_EQ(host_.segments.host_memory().used, 0u);
  const SessionPtr next = AddImage(0);
  EXPECT_EQ(Pages(next, kTenantFile), 0u) << "another file";
}

}  // namespace
}  // namespace torpor::server

#include "server/executor/session/pinning_ahead.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <deque>
#include <memory>
#include <vector>

#include "tests/server/executor/session/session_fixture.h"

namespace torpor::executor {
namespace {

constexpr Bytes kNodeBytes = 64 * kGiB;
constexpr Bytes kSegment = kGiB;
constexpr memory::BlockStatesLayout kLayout =
    memory::LayoutOfBlockStates(kNodeBytes, wire::kImageBlockBytes);

constexpr Bytes RecordBytes(Bytes image_bytes) {
  return memory::BlockStates::StatesOf({0, image_bytes}, wire::kImageBlockBytes).end;
}

// Sessions whose memory files are as torpord makes them: of the size of the node's addresses,
// mapped in parts; and which other executors may write to.
class PinningAheadTest : public testing::Test {
 protected:
  PinningAheadTest()
      : device_(*Device::Open(cuda_.driver(), 0)),
        pool_(*PhysicalPool::Create(*device_, 8 * FakeCuda::kChunk, FakeCuda::kChunk)),
        gpu_memory_(*device_, *pool_, {kBase, kNodeBytes}),
        store_(testing::TempDir()),
        modules_(*device_, store_) {}

  // The files of a session as the other executors see them.
  struct Elsewhere {
    UniqueFd image;
    UniqueFd states;
    const std::uint8_t* here = nullptr;  // the image's first byte in this process
  };
  static UniqueFd NewSparseFile(Bytes bytes) {
    UniqueFd file(memfd_create("session", MFD_CLOEXEC));
    EXPECT_EQ(ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
    return file;
  }
  Elsewhere& Open(std::uint64_t number) {
    Elsewhere& files = files_.emplace_back();
    files.image = NewSparseFile(2 * kNodeBytes);
    files.states = NewSparseFile(StateBytes(kNodeBytes));
    SessionIdentity identity = MakeIdentity(number);
    identity.device_base = kBase;
    identity.device_bytes = kNodeBytes;
    MappedSessionFiles mapped = MakeSessionFiles(MakeIdentity(number));
    mapped.image.image = *SharedMapping::InParts(UniqueFd(dup(files.image.get())), *images_,
                                                 {0, kNodeBytes}, kSegment);
    mapped.image.annex = *SharedMapping::InParts(UniqueFd(dup(files.image.get())), *annexes_,
                                                 {0, kNodeBytes}, kSegment, kNodeBytes);
    mapped.image.blocks.records = *SharedMapping::InParts(
        UniqueFd(dup(files.states.get())), *states_, {0, kLayout.records}, RecordBytes(kSegment));
    mapped.image.blocks.checkpoint =
        *SharedMapping::Map(files.states, memory::kCheckpointPageBytes, 0, kLayout.checkpoint);
    files.here = mapped.image.image.data();
    auto memory = *SessionMemory::Open(*device_, gpu_memory_, hasher_, identity, std::move(mapped),
                                       directory_);
    EXPECT_TRUE(registry_
                    .Add(std::make_unique<Session>(
                        SessionEnvironment{*device_, gpu_memory_, hasher_, modules_, libraries_,
                                           output_, events_},
                        identity, std::move(memory)))
                    .ok());
    return files;
  }
  // As another executor does with an upload.
  static void Write(const Elsewhere& files, memory::Extent extent) {
    StatesIn(*SharedMapping::Map(files.states, StateBytes(kNodeBytes)), kNodeBytes)
        .NoteUpload(extent);
    const std::vector<char> bytes(extent.bytes(), 'x');
    EXPECT_EQ(
        pwrite(files.image.get(), bytes.data(), bytes.size(), static_cast<off_t>(extent.begin)),
        static_cast<ssize_t>(bytes.size()));
  }
  bool Step() { return *task_.Step(nullptr, is_wanted_); }

  static constexpr std::uint64_t kBase = 0x5500'0000'0000;

  FakeCuda cuda_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<PhysicalPool> pool_;
  MappedMemory gpu_memory_;
  const std::unique_ptr<AddressWindow> images_ = *AddressWindow::Reserve(kNodeBytes);
  const std::unique_ptr<AddressWindow> annexes_ = *AddressWindow::Reserve(kNodeBytes);
  const std::unique_ptr<AddressWindow> states_ = *AddressWindow::Reserve(kLayout.records);
  HostBlockHasher hasher_;
  ModuleStore store_;
  ModuleLibrary modules_;
  MathLibraries libraries_;
  KernelOutput output_;
  SessionEvents events_;
  MemoryDirectory directory_;
  std::deque<Elsewhere> files_;
  SessionRegistry registry_;
  std::atomic<bool> is_wanted_{false};
  PinningAhead task_{registry_};
};

TEST_F(PinningAheadTest, WhatOtherExecutorsWriteIsPinnedHereWherever) {
  Open(1);
  const std::size_t windows = cuda_.registered_pieces();
  EXPECT_FALSE(Step());
  EXPECT_EQ(cuda_.registered_pieces(), windows);
  constexpr Bytes kAt = 40 * kGiB + 4 * kMiB;
  Write(files_[0], {kAt, kAt + 3 * kMiB});
  EXPECT_TRUE(Step());
  EXPECT_TRUE(cuda_.IsRegistered(files_[0].here + kAt));
  EXPECT_TRUE(cuda_.IsRegistered(files_[0].here + kAt + 3 * kMiB));
  EXPECT_FALSE(cuda_.IsRegistered(files_[0].here + kAt + 4 * kMiB)) << "nothing was written there";
  EXPECT_FALSE(Step());
  EXPECT_EQ(cuda_.registered_pieces(), windows + 1);
}

TEST_F(PinningAheadTest, AnImageIsLookedThroughOnlyAfterItsFileHasGrown) {
  const Elsewhere& files = Open(1);
  Write(files, {0, kMiB});
  EXPECT_TRUE(Step());
  EXPECT_FALSE(Step());
  // States alone: the file has no new pages.
  StatesIn(*SharedMapping::Map(files.states, StateBytes(kNodeBytes)), kNodeBytes)
      .NoteUpload({64 * kMiB, 65 * kMiB});
  EXPECT_FALSE(Step());
  Write(files, {64 * kMiB, 65 * kMiB});
  EXPECT_TRUE(Step());
}

// Of an image on the disk the states tell all the same.
TEST_F(PinningAheadTest, WhatHasNoPagesIsNotFilledWithZerosByPinning) {
  const Elsewhere& files = Open(1);
  StatesIn(*SharedMapping::Map(files.states, StateBytes(kNodeBytes)), kNodeBytes)
      .NoteUpload({0, kMiB});
  Write(files, {64 * kMiB, 65 * kMiB});
  EXPECT_TRUE(Step());
  EXPECT_FALSE(Step());
  EXPECT_TRUE(cuda_.IsRegistered(files.here + 64 * kMiB));
  EXPECT_FALSE(cuda_.IsRegistered(files.here));
}

TEST_F(PinningAheadTest, AnImageThatIsAboutToLeaveIsPinnedNoMoreBeforeItChanges) {
  const Elsewhere& files = Open(1);
  Write(files, {0, kMiB});
  EXPECT_TRUE(Step());
  Session& session = *registry_.All().front();
  const TimePoint deadline = SteadyClock().Now() + std::chrono::seconds(10);
  ASSERT_TRUE(session.ReleaseImage({0, kSegment}, HostPlaces::kAll, deadline).ok());
  EXPECT_FALSE(cuda_.IsRegistered(files.here));
  EXPECT_FALSE(Step());
  Write(files, {64 * kMiB, 65 * kMiB});
  EXPECT_TRUE(Step());
}

TEST_F(PinningAheadTest, SessionsFollowEachOtherPieceByPiece) {
  // In segments of their own.
  Write(Open(1), {0, 2 * kMiB});
  Write(Open(2), {kSegment, kSegment + 2 * kMiB});
  EXPECT_TRUE(Step());
  EXPECT_TRUE(cuda_.IsRegistered(files_[0].here));
  EXPECT_FALSE(cuda_.IsRegistered(files_[1].here + kSegment));
  EXPECT_TRUE(Step());
  EXPECT_FALSE(Step());
}

TEST_F(PinningAheadTest, WhoIsWantedPinsNothing) {
  Write(Open(1), {0, kMiB});
  is_wanted_ = true;
  EXPECT_TRUE(Step()) << "something is left";
  EXPECT_FALSE(cuda_.IsRegistered(files_[0].here));
}

// Each second, until there are no errors, would fill the log.
TEST_F(PinningAheadTest, WhatCannotBePinnedIsNotTriedAgainUntilSomethingChanges) {
  const Elsewhere& files = Open(1);
  Write(files, {0, kMiB});
  cuda_.Break(CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_FALSE(task_.Step(nullptr, is_wanted_).ok());
  EXPECT_FALSE(Step());
  cuda_.Break(CUDA_SUCCESS);
  Write(files, {64 * kMiB, 65 * kMiB});
  EXPECT_TRUE(Step());
  EXPECT_TRUE(Step());
}

}  // namespace
}  // namespace torpor::executor

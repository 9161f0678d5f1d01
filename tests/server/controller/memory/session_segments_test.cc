#include "server/controller/memory/session_segments.h"

#include <gtest/gtest.h>

#include <deque>
#include <iterator>
#include <map>
#include <string>
#include <vector>

namespace torpor::server {
namespace {

constexpr Bytes kTiB = 1024 * kGiB;
constexpr Bytes kChunk = 2 * kMiB;

class SessionSegmentsTest : public testing::Test {
 protected:
  static SessionSegments Make(Bytes bytes, bool is_apart = false) {
    return SessionSegments({.addresses = {0x2000'0000'0000, bytes, 0x3000'0000'0000, bytes},
                            .address_range = 64 * kGiB,
                            .chunk_bytes = kChunk,
                            .is_apart = is_apart});
  }
  static void MakePrimary(ClientSession& session, std::uint64_t id) {
    session.id = session.primary = SessionId{id};
  }
  static Bytes Owned(const ClientSession& session) {
    Bytes bytes = 0;
    for (const memory::Block& block : session.memory.device_segments) bytes += block.bytes;
    return bytes;
  }
};

// As many as a node of eight GPUs is to keep.
TEST_F(SessionSegmentsTest, TenThousandSessionsHaveRoomAndShareNothing) {
  SessionSegments segments = Make(16 * kTiB);
  std::deque<ClientSession> sessions(10'000);
  std::map<Bytes, Bytes> device;
  std::map<Bytes, Bytes> host;
  for (std::size_t i = 0; i < sessions.size(); ++i) {
    MakePrimary(sessions[i], i + 1);
    ASSERT_TRUE(segments.Begin(sessions[i], 300 * kMiB).ok()) << i;
    ASSERT_TRUE(segments.AllocateDevice(sessions[i], 300 * kMiB).ok()) << i;
    ASSERT_TRUE(segments.AllocateHost(sessions[i], kMiB).ok()) << i;
    EXPECT_EQ(Owned(sessions[i]), kGiB) << i;
    for (const memory::Block& block : sessions[i].memory.device_segments) {
      EXPECT_TRUE(device.emplace(block.offset, block.end()).second);
    }
    for (const memory::Block& block : sessions[i].memory.host_segments) {
      EXPECT_TRUE(host.emplace(block.offset, block.end()).second);
    }
  }
  for (const auto& owned : {device, host}) {
    for (auto block = owned.begin(); std::next(block) != owned.end(); ++block) {
      ASSERT_LE(block->second, std::next(block)->first);
    }
  }
  for (ClientSession& session : sessions) segments.Release(session);
  EXPECT_EQ(segments.free_device_bytes(), 16 * kTiB);
}

TEST_F(SessionSegmentsTest, GrowsByPiecesUpToTheLimitWhereverOthersAre) {
  for (const bool is_apart : {false, true}) {
    SessionSegments segments = Make(kTiB, is_apart);
    ClientSession grower;
    ClientSession neighbour;
    MakePrimary(grower, 1);
    MakePrimary(neighbour, 2);
    ASSERT_TRUE(segments.Begin(grower, 140 * kGiB).ok());
    ASSERT_TRUE(segments.Begin(neighbour, kGiB).ok()) << "in the way";
    for (int piece = 0; piece < 233; ++piece) {
      ASSERT_TRUE(segments.AllocateDevice(grower, 600 * kMiB).ok()) << piece;
    }
    EXPECT_GT(grower.memory.device_segments.size(), 1u);
    EXPECT_LT(grower.memory.device_segments.size(), 20u);
  }
}

TEST_F(SessionSegmentsTest, ALargeAllocationGetsSegmentsSideBySide) {
  SessionSegments segments = Make(kTiB);
  ClientSession session;
  MakePrimary(session, 1);
  ASSERT_TRUE(segments.Begin(session, 140 * kGiB).ok());
  const auto small = segments.AllocateDevice(session, kMiB);
  ASSERT_TRUE(segments.AllocateDevice(session, 139 * kGiB).ok());
  EXPECT_EQ(session.memory.device->live_bytes(), 139 * kGiB + kMiB);
  EXPECT_TRUE(session.memory.device->Free(small->offset));
}

TEST_F(SessionSegmentsTest, ASessionHasALimit) {
  SessionSegments segments = Make(kTiB);
  ClientSession session;
  MakePrimary(session, 1);
  ASSERT_TRUE(segments.Begin(session, kGiB).ok());
  const absl::Status status = segments.AllocateDevice(session, 64 * kGiB).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_NE(std::string(status.message()).find("as many as it may"), std::string::npos) << status;
  EXPECT_TRUE(segments.AllocateDevice(session, 63 * kGiB).ok());
}

TEST_F(SessionSegmentsTest, TheNodeHasALimitAndSaysHowToRaiseIt) {
  SessionSegments segments = Make(2 * kGiB);
  ClientSession sessions[3];
  for (std::uint64_t i = 0; i < 3; ++i) MakePrimary(sessions[i], i + 1);
  EXPECT_TRUE(segments.Begin(sessions[0], kMiB).ok());
  EXPECT_TRUE(segments.Begin(sessions[1], kMiB).ok());
  const absl::Status status = segments.Begin(sessions[2], kMiB);
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_NE(std::string(status.message()).find("address_space"), std::string::npos) << status;
  segments.Release(sessions[0]);
  EXPECT_TRUE(segments.Begin(sessions[2], kMiB).ok());
}

LoggedSession LoggedOf(const SessionSegments& segments, const ClientSession& session) {
  const SessionAllocations& memory = session.memory;
  const NodeAddresses& addresses = segments.addresses();
  LoggedSession logged;
  logged.opened.device_base = addresses.device_base;
  logged.opened.host_base = addresses.host_base;
  logged.opened.image_bytes = addresses.device_bytes;
  logged.opened.host_arena_bytes = addresses.host_bytes;
  logged.opened.chunk_bytes = kChunk;
  logged.opened.address_limit = memory.address_limit;
  logged.device.segments = memory.device_segments;
  logged.host.segments = memory.host_segments;
  for (const memory::Block& piece : memory.device->Blocks()) {
    logged.device.pieces[piece.offset] = {piece.bytes, 0};
  }
  for (const memory::Block& piece : memory.host->Blocks()) {
    logged.host.pieces[piece.offset] = {piece.bytes, 0};
  }
  return logged;
}

TEST_F(SessionSegmentsTest, ASessionOfAnEarlierTorpordHasWhatItHad) {
  SessionSegments earlier = Make(kTiB);
  ClientSession session;
  MakePrimary(session, 1);
  ASSERT_TRUE(earlier.Begin(session, kGiB).ok());
  ASSERT_TRUE(earlier.AllocateDevice(session, 3 * kGiB).ok());
  ASSERT_TRUE(earlier.AllocateHost(session, 100 * kMiB).ok());
  const LoggedSession logged = LoggedOf(earlier, session);
  SessionSegments segments = Make(kTiB);
  ClientSession restored;
  MakePrimary(restored, 1);
  ASSERT_EQ(segments.Restore(restored, logged), absl::OkStatus());
  EXPECT_EQ(restored.memory.device_segments, session.memory.device_segments);
  EXPECT_EQ(restored.memory.device->Blocks(), session.memory.device->Blocks());
  EXPECT_EQ(restored.memory.host_blocks.size(), 1u);
  EXPECT_EQ(segments.free_device_bytes(), earlier.free_device_bytes());
  ClientSession second;
  MakePrimary(second, 2);
  EXPECT_TRUE(absl::IsFailedPrecondition(segments.Restore(second, logged))) << "they are in use";
  segments.Release(restored);
  EXPECT_EQ(segments.free_device_bytes(), kTiB);
}

TEST_F(SessionSegmentsTest, OtherAddressesAreNotTheSessions) {
  SessionSegments earlier = Make(kTiB);
  ClientSession session;
  MakePrimary(session, 1);
  ASSERT_TRUE(earlier.Begin(session, kGiB).ok());
  const LoggedSession logged = LoggedOf(earlier, session);
  SessionSegments smaller = Make(kTiB / 2);
  SessionSegments apart = Make(kTiB, /*is_apart=*/true);
  ClientSession restored;
  MakePrimary(restored, 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(smaller.Restore(restored, logged)));
  EXPECT_TRUE(absl::IsFailedPrecondition(apart.Restore(restored, logged)));
}

}  // namespace
}  // namespace torpor::server

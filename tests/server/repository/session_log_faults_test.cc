#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/repository/session_log.h"
#include "tests/base/disk_faults.h"

namespace torpor::server {
namespace {

const std::string kLogPath = "/run/sessions.log";
constexpr std::uint64_t kLoggedSession = 7;
constexpr std::uint64_t kAllocations = 3;

// A life of a torpord: it opens the log and tells of a session's allocations, one after another.
absl::Status Live(SimulatedDisk& disk) {
  const auto log = SessionLog::Open(kLogPath, disk);
  if (!log.ok()) return log.status();
  (*log)->Append(SessionOpened{.session = kLoggedSession, .key = {1}, .instance = "f/a"});
  for (std::uint64_t i = 0; i < kAllocations; ++i) {
    (*log)->Append(Allocated{kLoggedSession, MemoryKind::kDevice, i + 1, i * 4096, 512});
  }
  return absl::OkStatus();
}

// What the next torpord finds of these lives: the first so many records, none of them changed.
void ExpectABeginning(SimulatedDisk& disk, bool is_whole) {
  const auto log = SessionLog::Open(kLogPath, disk);
  ASSERT_TRUE(log.ok()) << log.status();
  const LoggedSession* const session = (*log)->state().Find(SessionId{kLoggedSession});
  EXPECT_TRUE(session != nullptr || !is_whole);
  if (session == nullptr) return;
  EXPECT_EQ(session->opened.instance, "f/a");
  const auto& pieces = session->device.pieces;
  EXPECT_TRUE(pieces.size() == kAllocations || !is_whole) << pieces.size();
  std::uint64_t next = 0;
  for (const auto& [offset, piece] : pieces) {
    EXPECT_EQ(offset, next * 4096);
    EXPECT_EQ(piece, (LoggedMemory::Piece{512, ++next}));
  }
}

TEST(SessionLogFaultsTest, APowerCutLeavesABeginningOrNothing) {
  const int operations = TryAllFaults(
      {.prepare = [](SimulatedDisk&) {},
       .write = Live,
       .check = [](SimulatedDisk& disk, bool) { ExpectABeginning(disk, /*is_whole=*/false); },
       .outlives_machine = false});
  // Read, create, write and rename; then a write for each record.
  EXPECT_EQ(operations, 4 + 1 + static_cast<int>(kAllocations));
}

TEST(SessionLogFaultsTest, AfterAFailureNoSessionOutlivesItsTorpord) {
  for (int operation = 5; operation <= 8; ++operation) {
    SimulatedDisk disk;
    disk.FailAt(operation, ENOSPC);
    ASSERT_TRUE(Live(disk).ok()) << "torpord goes on";
    ASSERT_TRUE(disk.has_failed());
    EXPECT_EQ(disk.Find(kLogPath), nullptr) << "a log without its end would be believed";
    EXPECT_TRUE((*SessionLog::Open(kLogPath, disk))->state().sessions().empty());
  }
}

TEST(SessionLogFaultsTest, ALogThatCannotBeRemovedIsEmptied) {
  SimulatedDisk disk;
  disk.FailFrom(6, EIO, /*count=*/2);
  ASSERT_TRUE(Live(disk).ok());
  ASSERT_NE(disk.Find(kLogPath), nullptr);
  EXPECT_TRUE(disk.Find(kLogPath)->empty());
  EXPECT_TRUE((*SessionLog::Open(kLogPath, disk))->state().sessions().empty());
}

TEST(SessionLogFaultsTest, ALogThatCannotBeReadIsNamedAndStays) {
  SimulatedDisk disk;
  ASSERT_TRUE(Live(disk).ok());
  disk.FailAt(1, EIO);
  const absl::Status status = SessionLog::Open(kLogPath, disk).status();
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(kLogPath));
  ExpectABeginning(disk, /*is_whole=*/true);
}

}  // namespace
}  // namespace torpor::server

#include "server/repository/session_log.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>

#include "tests/server/links/test_server.h"

namespace torpor::server {
namespace {

constexpr std::uint64_t kSession = 7;

SessionOpened Opened(std::uint64_t session = kSession) {
  return {.session = session, .key = {1, 2, 3}, .instance = "f/a", .replays = true};
}

class SessionLogTest : public testing::Test {
 protected:
  std::unique_ptr<SessionLog> Open() {
    auto log = SessionLog::Open(path_);
    EXPECT_TRUE(log.ok()) << log.status();
    return *std::move(log);
  }
  std::vector<std::uint8_t> Bytes() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void Write(const std::vector<std::uint8_t>& bytes) const {
    std::ofstream file(path_, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  std::uintmax_t size() const { return Bytes().size(); }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.path("sessions.log");
};

TEST_F(SessionLogTest, TheNextTorpordFindsWhatWasAppended) {
  const auto log = Open();
  EXPECT_EQ(log->state().begun().lives, 1u);
  log->Append(Opened());
  log->Append(SegmentsHeld{kSession, MemoryKind::kDevice, {0, kGiB}});
  log->Append(Allocated{kSession, MemoryKind::kDevice, 3, 4096, 512});
  log->Append(Allocated{kSession, MemoryKind::kHost, 4, 0, 4096});
  log->Append(Freed{kSession, MemoryKind::kHost, 5, 0});
  log->Append(WorkUnsaved{kSession, true});
  log->Append(ClientAway{kSession, 77});
  log->Append(Opened(8));
  log->Append(EndsWithTorpord{8, "its reason"});
  log->Append(ExecutorRan{3, 100, 200});
  log->Append(GpuProcessRan{3, 100, 200, GpuProcess::kSpare, 1});
  log->Append(GpuProcessRan{3, 100, 200, GpuProcess::kExecutor, 1});
  const auto next = Open();  // as after a kill: the first is still there
  EXPECT_EQ(next->state().begun().lives, 2u);
  EXPECT_EQ(next->state().begun().next_session, 9u);
  ASSERT_EQ(next->state().processes().size(), 1u);
  EXPECT_EQ(next->state().processes()[0], (GpuProcessRan{3, 100, 200, GpuProcess::kExecutor, 1}));
  const LoggedSession* const session = next->state().Find(SessionId{kSession});
  ASSERT_NE(session, nullptr);
  EXPECT_EQ(session->opened.instance, "f/a");
  EXPECT_EQ(session->opened.key, Opened().key);
  EXPECT_EQ(session->device.segments, (std::vector<memory::Block>{{0, kGiB}}));
  ASSERT_EQ(session->device.pieces.count(4096), 1u);
  EXPECT_EQ(session->device.pieces.at(4096), (LoggedMemory::Piece{512, 3}));
  EXPECT_TRUE(session->host.pieces.empty());
  EXPECT_EQ(session->frees, (std::deque<std::uint64_t>{5}));
  EXPECT_TRUE(session->is_unsaved);
  EXPECT_EQ(session->client_away_since, 77);
  EXPECT_EQ(next->state().Find(SessionId{8})->why_not, "its reason");
}

TEST_F(SessionLogTest, ClosedSessionsAreForgottenAndTheirIdsAreNot) {
  Open()->Append(Opened());
  Open()->Append(SessionClosed{kSession});
  const auto log = Open();
  EXPECT_TRUE(log->state().sessions().empty());
  EXPECT_EQ(log->state().begun().next_session, kSession + 1);
}

TEST_F(SessionLogTest, ATornRecordEndsTheFile) {
  Open()->Append(Opened());
  const std::vector<std::uint8_t> whole = Bytes();
  Open()->Append(Allocated{kSession, MemoryKind::kDevice, 3, 4096, 512});
  const std::vector<std::uint8_t> longer = Bytes();
  for (std::size_t size = whole.size(); size < longer.size(); ++size) {
    const LoggedSessions state = ReadSessionLog(std::span(longer).first(size));
    ASSERT_NE(state.Find(SessionId{kSession}), nullptr);
    EXPECT_TRUE(state.Find(SessionId{kSession})->device.pieces.empty()) << size;
  }
  std::vector<std::uint8_t> damaged = longer;
  damaged.back() ^= 1;
  Write(damaged);
  EXPECT_TRUE(Open()->state().Find(SessionId{kSession})->device.pieces.empty());
}

TEST_F(SessionLogTest, AnotherVersionIsNoLog) {
  std::vector<std::uint8_t> bytes = LogEntryOf(LogBegun{.version = kSessionLogVersion + 1});
  const std::vector<std::uint8_t> opened = LogEntryOf(Opened());
  bytes.insert(bytes.end(), opened.begin(), opened.end());
  Write(bytes);
  EXPECT_TRUE(Open()->state().sessions().empty());
}

TEST_F(SessionLogTest, ALogFromBeforeImagesWereSpilledIsRead) {
  std::vector<std::uint8_t> bytes = LogEntryOf(LogBegun{.version = 1});
  const std::vector<std::uint8_t> opened = LogEntryOf(Opened());
  bytes.insert(bytes.end(), opened.begin(), opened.end());
  Write(bytes);
  EXPECT_TRUE(Open()->state().Find(SessionId{kSession}));
  EXPECT_EQ(Open()->state().begun().version, kSessionLogVersion) << "earlier torpords refuse it";
}

TEST_F(SessionLogTest, AnImageOnTheDiskIsFoundThereUntilItIsBack) {
  const std::vector<SpilledPiece> pieces = {{0, kSpillPieceBytes, 11}, {kGiB, 4096, 12}};
  const auto log = Open();
  log->Append(Opened());
  log->Append(ImageSpilled::Of(kSession, pieces));
  const auto next = Open();
  const LoggedSession* const session = next->state().Find(SessionId{kSession});
  ASSERT_TRUE(session && session->spilled);
  EXPECT_EQ(session->spilled->pieces, pieces);
  EXPECT_EQ(ReadSessionLog(Bytes()).Find(SessionId{kSession})->spilled, session->spilled);
  next->Append(ImageBack{kSession});
  EXPECT_FALSE(Open()->state().Find(SessionId{kSession})->spilled);
}

TEST_F(SessionLogTest, ASessionKeepsItsTenantsFile) {
  {
    const auto log = Open();
    log->Append(Opened());
    log->Append(TenantFileHeld{kSession, "a"});
  }
  for (int life = 0; life < 2; ++life) {
    EXPECT_EQ(Open()->state().Find(SessionId{kSession})->tenant, "a");
  }
}

TEST_F(SessionLogTest, AnImageOfPiecesThatCannotBeIsNotOnTheDisk) {
  const auto log = Open();
  log->Append(Opened());
  log->Append(ImageSpilled::Of(kSession, {{0, kSpillPieceBytes + 1, 11}}));
  EXPECT_FALSE(log->state().Find(SessionId{kSession})->spilled);
  log->Append(ImageSpilled::Of(kSession, {{~std::uint64_t{0}, 4096, 11}}));
  EXPECT_FALSE(log->state().Find(SessionId{kSession})->spilled);
  log->Append(ImageSpilled{kSession, {1, 2}});
  EXPECT_FALSE(log->state().Find(SessionId{kSession})->spilled);
}

TEST_F(SessionLogTest, TheFileStaysSmallWhateverComesAndGoes) {
  const auto log = Open();
  log->Append(Opened());
  for (std::uint64_t request = 1; request < 100'000; request += 2) {
    log->Append(Allocated{kSession, MemoryKind::kDevice, request, 4096, 512});
    log->Append(Freed{kSession, MemoryKind::kDevice, request + 1, 4096});
  }
  EXPECT_LT(size(), 6u << 20);
  const LoggedSession* const session = log->state().Find(SessionId{kSession});
  EXPECT_EQ(session->frees.size(), LoggedSession::kMaxFrees);
  EXPECT_EQ(session->frees.back(), 100'000u);
  EXPECT_EQ(Open()->state().Find(SessionId{kSession})->frees, session->frees);
}

TEST_F(SessionLogTest, RecordsOfUnknownSessionsSayNothing) {
  const auto log = Open();
  log->Append(Allocated{kSession, MemoryKind::kDevice, 3, 4096, 512});
  log->Append(Freed{kSession, MemoryKind::kDevice, 4, 4096});
  log->Append(SessionClosed{kSession});
  EXPECT_TRUE(log->state().sessions().empty());
}

TEST_F(SessionLogTest, AFolderThatIsMissingIsNamed) {
  const auto log = SessionLog::Open(folder_.path("nowhere") + "/sessions.log");
  EXPECT_TRUE(absl::IsUnavailable(log.status()));
}

}  // namespace
}  // namespace torpor::server

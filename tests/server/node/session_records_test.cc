#include "server/node/session_records.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "tests/base/temporary_folder.h"

namespace torpor::server {
namespace {

const GpuIndex kGpu{0};

// A process that does nothing, as an executor that was left.
class LeftProcess {
 public:
  LeftProcess() : pid_(fork()) {
    if (pid_ == 0) {
      while (true) pause();
    }
  }
  ~LeftProcess() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  GpuProcessRan RecordFor(std::int64_t gpu, GpuProcess role = GpuProcess::kExecutor,
                          std::uint32_t place = 0) const {
    return {gpu, pid_, IdentityOf(pid_)->start_ticks, role, place};
  }
  ProcessIdentity identity() const { return *IdentityOf(pid_); }
  // Whether a signal has ended it.
  bool WasKilled() const {
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
    return info.si_pid == pid_ && info.si_code == CLD_KILLED;
  }

 private:
  const pid_t pid_;
};

class SessionRecordsTest : public testing::Test {
 protected:
  void SetUp() override {
    // As a service manager that keeps descriptors.
    setenv("NOTIFY_SOCKET", folder_.path("none").c_str(), 1);
    setenv("FDSTORE", "100", 1);
  }
  void TearDown() override {
    unsetenv("NOTIFY_SOCKET");
    unsetenv("FDSTORE");
  }
  std::unique_ptr<SessionRecords> Open() { return *SessionRecords::Open(folder_.path(), {}); }
  // A torpord that has started executors of this kind, and has died.
  void LiveAndDie(const std::string& kind, const std::vector<GpuProcessRan>& processes) {
    const auto records = Open();
    ASSERT_NE(records->log(), nullptr);
    ASSERT_TRUE(records->TakeGpuProcesses({kGpu}, kind).ok());
    for (const GpuProcessRan& process : processes) records->log()->Append(process);
  }

  const TemporaryFolder folder_;
};

TEST_F(SessionRecordsTest, ExecutorsOfTheSameKindAreTaken) {
  const LeftProcess left;
  LiveAndDie("a", {left.RecordFor(0)});
  const auto records = Open();
  EXPECT_TRUE(records->HasGpuProcesses());
  const auto taken = records->TakeGpuProcesses({kGpu}, "a");
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(*taken,
            (std::map<GpuIndex, GpuProcesses>{{kGpu, {.executors = {{0, left.identity()}}}}}));
  EXPECT_FALSE(left.WasKilled());
}

TEST_F(SessionRecordsTest, TakenExecutorsAreKnownToTheNextTorpordToo) {
  const LeftProcess left;
  LiveAndDie("a", {left.RecordFor(0)});
  LiveAndDie("a", {});
  EXPECT_EQ(Open()->TakeGpuProcesses({kGpu}, "a")->size(), 1u);
}

TEST_F(SessionRecordsTest, ExecutorsOfAnotherKindEnd) {
  const LeftProcess left;
  LiveAndDie("a", {left.RecordFor(0)});
  const auto records = Open();
  EXPECT_TRUE(records->TakeGpuProcesses({kGpu}, "b")->empty());
  EXPECT_TRUE(left.WasKilled());
  EXPECT_FALSE(records->HasGpuProcesses());
}

TEST_F(SessionRecordsTest, OneExecutorAGpuIsTaken) {
  const LeftProcess first;
  const LeftProcess second;
  const LeftProcess other;
  LiveAndDie("a", {first.RecordFor(0), second.RecordFor(0), other.RecordFor(1)});
  EXPECT_EQ(*Open()->TakeGpuProcesses({kGpu}, "a"),
            (std::map<GpuIndex, GpuProcesses>{{kGpu, {.executors = {{0, second.identity()}}}}}));
  EXPECT_TRUE(first.WasKilled());
  EXPECT_TRUE(other.WasKilled()) << "of a GPU that is served no more";
}

TEST_F(SessionRecordsTest, ASpareAndTheMemorysOwnerAreTakenToo) {
  const LeftProcess executor;
  const LeftProcess spare;
  const LeftProcess owner;
  LiveAndDie(
      "a", {executor.RecordFor(0, GpuProcess::kExecutor, 1),
            owner.RecordFor(0, GpuProcess::kPoolOwner), spare.RecordFor(0, GpuProcess::kSpare, 0)});
  EXPECT_EQ(*Open()->TakeGpuProcesses({kGpu}, "a"),
            (std::map<GpuIndex, GpuProcesses>{{kGpu,
                                               {.executors = {{1, executor.identity()}},
                                                .spares = {{0, spare.identity()}},
                                                .pool_owner = owner.identity()}}}));
}

TEST_F(SessionRecordsTest, ExecutorsInDifferentPlacesAreAllTaken) {
  const LeftProcess first;
  const LeftProcess second;
  LiveAndDie("a", {first.RecordFor(0, GpuProcess::kExecutor, 0),
                   second.RecordFor(0, GpuProcess::kExecutor, 2)});
  EXPECT_EQ(*Open()->TakeGpuProcesses({kGpu}, "a"),
            (std::map<GpuIndex, GpuProcesses>{
                {kGpu, {.executors = {{0, first.identity()}, {2, second.identity()}}}}}));
}

TEST_F(SessionRecordsTest, ASpareThatHasTakenOverIsTheExecutor) {
  const LeftProcess process;
  LiveAndDie("a", {process.RecordFor(0, GpuProcess::kSpare, 1),
                   process.RecordFor(0, GpuProcess::kExecutor, 1)});
  EXPECT_EQ(*Open()->TakeGpuProcesses({kGpu}, "a"),
            (std::map<GpuIndex, GpuProcesses>{{kGpu, {.executors = {{1, process.identity()}}}}}));
}

TEST_F(SessionRecordsTest, ASpareWhoseExecutorHasDiedKeepsItsPlace) {
  const LeftProcess spare;
  LiveAndDie("a", {spare.RecordFor(0, GpuProcess::kSpare, 0)});
  EXPECT_EQ(*Open()->TakeGpuProcesses({kGpu}, "a"),
            (std::map<GpuIndex, GpuProcesses>{{kGpu, {.spares = {{0, spare.identity()}}}}}));
}

TEST_F(SessionRecordsTest, ExecutorsWhoseMemoryHasNoOwnerAnyMoreEnd) {
  const LeftProcess executor;
  GpuProcessRan owner;
  {
    const LeftProcess dead;
    owner = dead.RecordFor(0, GpuProcess::kPoolOwner);
  }
  LiveAndDie("a", {executor.RecordFor(0), owner});
  EXPECT_TRUE(Open()->TakeGpuProcesses({kGpu}, "a")->empty());
  EXPECT_TRUE(executor.WasKilled());
}

TEST_F(SessionRecordsTest, WithoutAServiceManagerNothingIsRecorded) {
  const LeftProcess left;
  LiveAndDie("a", {left.RecordFor(0)});
  unsetenv("NOTIFY_SOCKET");
  const auto records = Open();
  EXPECT_EQ(records->log(), nullptr);
  EXPECT_FALSE(records->HasGpuProcesses());
  EXPECT_TRUE(records->TakeGpuProcesses({kGpu}, "a")->empty());
  EXPECT_TRUE(left.WasKilled()) << "another one is about to be started";
}

}  // namespace
}  // namespace torpor::server

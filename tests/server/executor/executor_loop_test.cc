// The thread that decides, with memory of the test's own: what operations and consolidation do here
// is to wait until the test lets them go on.
#include "server/executor/executor_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "server/executor/session/consolidation.h"
#include "tests/server/executor/session/session_fixture.h"

namespace torpor::executor {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

constexpr auto kPatience = std::chrono::seconds(20);
// Where nothing of a process without much memory lies; no session is opened here.
constexpr server::NodeAddresses kNode = {0x2000'0000'0000, kGiB, 0x3000'0000'0000,
                                         server::kHostSegmentBytes};
constexpr Duration kLong = std::chrono::seconds(1);  // for the loop to find it quiet

// What happens, in order, in whatever thread; work that is held waits.
class Record {
 public:
  void Note(const std::string& what) {
    std::lock_guard lock(mutex_);
    NoteLocked(what);
  }
  void Work(const std::string& name) {
    std::unique_lock lock(mutex_);
    NoteLocked(name);
    changed_.wait(lock, [&] { return !held_.contains(name); });
    NoteLocked(name + " ends");
  }
  void Hold(const std::string& name) {
    std::lock_guard lock(mutex_);
    held_.insert(name);
  }
  void LetGo(const std::string& name) {
    std::lock_guard lock(mutex_);
    held_.erase(name);
    changed_.notify_all();
  }
  void LetAllGo() {
    std::lock_guard lock(mutex_);
    held_.clear();
    changed_.notify_all();
  }

  // Whether it happens as often as that.
  bool Await(const std::string& what, int times = 1) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience,
                             [&] { return std::ranges::count(noted_, what) >= times; });
  }
  std::vector<std::string> noted() {
    std::lock_guard lock(mutex_);
    return noted_;
  }

 private:
  void NoteLocked(const std::string& what) {
    noted_.push_back(what);
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> noted_;
  std::set<std::string> held_;
};

// Time that passes when the test says so. Before any that the machine's clock shows, so that nobody
// waits for it.
class StandingClock final : public Clock {
 public:
  TimePoint Now() const override {
    std::unique_lock lock(mutex_);
    const TimePoint now = now_;
    if (at_readings_.empty()) return now;
    const std::function<void()> what = std::move(at_readings_.front());
    at_readings_.pop_front();
    lock.unlock();
    what();
    return now;
  }
  void Pass(Duration time) {
    std::lock_guard lock(mutex_);
    now_ += time;
  }
  // Does these things while the clock is read, one at each of the next readings.
  void AtNextReadings(std::deque<std::function<void()>> what) {
    std::lock_guard lock(mutex_);
    at_readings_ = std::move(what);
  }

 private:
  mutable std::mutex mutex_;
  TimePoint now_{};
  mutable std::deque<std::function<void()>> at_readings_;
};

// A session's memory of which there is none. What is reached of other GPUs is work.
class IdleBacking final : public ImageBacking {
 public:
  IdleBacking(const Device& device, Record& record, std::string name,
              const std::atomic<CUresult>& result)
      : device_(device), record_(record), name_(std::move(name)), result_(result) {}

  absl::StatusOr<memory::ExtentSet> Import(const memory::ExtentSet&, ChunkOwner&) override {
    record_.Work(name_);
    if (result_ == CUDA_SUCCESS) return memory::ExtentSet();
    return device_.Status(result_, "the test");
  }
  absl::StatusOr<bool> Move(const memory::Move&, CUstream) override {
    record_.Note("move");
    return true;
  }

  absl::StatusOr<std::vector<memory::Extent>> Back(std::span<const memory::Extent>) override {
    return absl::ResourceExhaustedError("there is no memory");
  }
  absl::Status Map(memory::Extent) override { return absl::OkStatus(); }
  absl::Status Release(memory::Extent, const memory::ExtentSet&) override {
    return absl::OkStatus();
  }
  bool empty() const override { return true; }
  Bytes held_bytes() const override { return 0; }
  Bytes chunk_bytes() const override { return 2 * kMiB; }
  CUdeviceptr AddressOf(Bytes) const override { return 0; }
  std::vector<BackedPart> PartsOf(memory::Extent) const override { return {}; }
  bool is_translating() const override { return true; }
  std::shared_ptr<const AddressTable> Addresses() const override {
    return std::make_shared<const AddressTable>(0, std::vector<BackedPart>());
  }
  AddressRange gpu_addresses() const override { return {}; }
  absl::StatusOr<CUmemGenericAllocationHandle> HandleOf(std::uint64_t) const override {
    return absl::NotFoundError("none");
  }

 private:
  const Device& device_;
  Record& record_;
  const std::string name_;
  const std::atomic<CUresult>& result_;
};

// A step of consolidation is work, too.
class IdleMemory final : public ImageMemory {
 public:
  IdleMemory(const Device& device, Record& record) : device_(device), record_(record) {}

  absl::StatusOr<std::unique_ptr<ImageBacking>> Open(SessionId session, std::uint64_t,
                                                     Bytes) override {
    return std::make_unique<IdleBacking>(device_, record_, std::to_string(session.value), result);
  }
  Bytes capacity() const override { return 0; }
  Bytes free_bytes() const override { return free_; }
  std::vector<memory::Move> PlanMoves(const std::set<SessionId>& sessions, Bytes) override {
    record_.Work("step");
    if (plans.empty() || sessions.empty()) return {};
    const std::size_t moves = plans.front();
    plans.pop_front();
    free_ += moves;
    return std::vector<memory::Move>(moves, {.owner = *sessions.begin(), .bytes = 1});
  }

  std::deque<std::size_t> plans;                // how many moves the next steps have
  std::atomic<CUresult> result = CUDA_SUCCESS;  // of operations

 private:
  const Device& device_;
  Record& record_;
  std::atomic<Bytes> free_ = 0;
};

// An idle task whose steps are noted as "other".
class OtherTask final : public IdleTask {
 public:
  explicit OtherTask(Record& record) : record_(record) {}

  const char* name() const override { return "something else"; }
  Duration quiet_time() const override { return kQuiet; }
  std::optional<Duration> look_again_after() const override {
    return looks_again ? std::optional(kInterval) : std::nullopt;
  }
  absl::StatusOr<bool> Step(CUstream, const std::atomic<bool>&) override {
    record_.Note("other");
    return gains-- > 0;
  }

  static constexpr Duration kQuiet = std::chrono::milliseconds(50);
  static constexpr Duration kInterval = 2 * kLong;
  std::atomic<int> gains = 0;  // how many of the next steps gain something
  std::atomic<bool> looks_again = false;

 private:
  Record& record_;
};

// What the watch of the context finds: by asking, and by giving work.
std::atomic<CUresult> watched = CUDA_SUCCESS;
std::atomic<CUresult> recorded = CUDA_SUCCESS;
std::atomic<int> watches = 0;

// The loop's threads use streams at the same time, which FakeCuda does not allow.
CudaDriver WithIdleStreams(CudaDriver driver) {
  driver.StreamCreateWithPriority = [](CUstream* stream, unsigned, int) {
    *stream = reinterpret_cast<CUstream>(&watched);
    return CUDA_SUCCESS;
  };
  driver.StreamDestroy = [](CUstream) { return CUDA_SUCCESS; };
  driver.StreamQuery = [](CUstream) {
    watches.fetch_add(1);
    watches.notify_all();
    return watched.load();
  };
  driver.EventCreate = [](CUevent* event, unsigned) {
    *event = reinterpret_cast<CUevent>(&recorded);
    return CUDA_SUCCESS;
  };
  driver.EventDestroy = [](CUevent) { return CUDA_SUCCESS; };
  driver.EventRecord = [](CUevent, CUstream) { return recorded.load(); };
  return driver;
}

// Sessions 1, 2 and 3.
class ExecutorLoopTest : public testing::Test, protected DaemonUplink {
 protected:
  ExecutorLoopTest()
      : device_(*Device::Open(WithIdleStreams(cuda_.driver()), 0)),
        memory_(*device_, record_),
        store_(testing::TempDir()),
        modules_(*device_, store_),
        windows_(*NodeWindows::Reserve(kNode, FakeCuda::kChunk)),
        peer_pools_(*PeerPools::Start(*device_)),
        loop_({Environment(), registry_, directory_, *windows_, *peer_pools_, "", kPatience, {}},
              {&consolidation_, &other_}, *this, clock_) {
    watched = recorded = CUDA_SUCCESS;
    for (const std::uint64_t number : {1, 2, 3}) {
      const SessionIdentity identity = MakeIdentity(number);
      auto memory = *SessionMemory::Open(*device_, memory_, hasher_, identity,
                                         MakeSessionFiles(identity), directory_);
      EXPECT_TRUE(
          registry_.Add(std::make_unique<Session>(Environment(), identity, std::move(memory)))
              .ok());
    }
  }
  void SetUp() override {
    thread_ = std::thread([this] { end_ = loop_.Run(); });
    ASSERT_TRUE(record_.Await(PostPing())) << "from now on it knows since when it is quiet";
  }
  void TearDown() override {
    record_.LetAllGo();
    if (thread_.joinable()) End(DaemonGone{"the test ends"});
  }

  SessionEnvironment Environment() {
    return {*device_, memory_, hasher_, modules_, libraries_, output_, events_};
  }
  void Send(const v1::ExecutorMessage& message) override {
    if (message.has_operation_done()) {
      code_ = static_cast<absl::StatusCode>(message.operation_done().code());
      record_.Note("answer " + std::to_string(message.operation_done().operation_id()));
    }
    if (message.has_memory_use()) record_.Note("memory is free");
    if (message.has_swap_in_complete()) {
      record_.Note("arrival of " + std::to_string(message.swap_in_complete().session_id()));
    }
    if (message.has_context_lost()) {
      record_.Note("lost by " + std::to_string(message.context_lost().session_id()));
      why_lost_ = message.context_lost().message();
    }
  }

  // Gives what its answer is noted as.
  std::string Post(v1::DaemonMessage operation) {
    operation.set_operation_id(++posted_);
    loop_.Post(std::move(operation));
    return "answer " + std::to_string(posted_);
  }
  // Work that is noted as the session's number.
  std::string PostWork(std::uint64_t session) {
    v1::DaemonMessage operation;
    operation.mutable_map_peer()->set_session_id(session);
    return Post(operation);
  }
  std::string PostPing() {
    v1::DaemonMessage operation;
    operation.mutable_ping();
    return Post(operation);
  }
  std::string PostShutdown() {
    v1::DaemonMessage operation;
    operation.mutable_shutdown();
    return Post(operation);
  }
  void BeginLease(std::uint64_t session) {
    v1::DaemonMessage operation;
    operation.mutable_begin_lease()->set_session_id(session);
    operation.mutable_begin_lease()->set_lease_id(kLease.value);
    ASSERT_TRUE(record_.Await(Post(operation)));
  }
  std::string PostEndOfLease(std::uint64_t session) {
    v1::DaemonMessage operation;
    operation.mutable_end_lease()->set_session_id(session);
    operation.mutable_end_lease()->set_lease_id(kLease.value);
    return Post(operation);
  }
  // The loop's watch has looked at the context since.
  static void AwaitWatch() {
    const int before = watches;
    while (watches < before + 2) watches.wait(watches.load());
  }
  ExitStatus End(LoopMessage why) {
    loop_.Post(std::move(why));
    return End();
  }
  ExitStatus End() {
    thread_.join();
    return end_;
  }
  // After the loop's end.
  int Steps() { return static_cast<int>(std::ranges::count(record_.noted(), "step")); }
  void ExpectThatStepsWereAlone() {
    std::set<std::string> running;
    for (const std::string& what : record_.noted()) {
      const bool is_work = what == "step" || what == "1" || what == "2" || what == "3";
      if (is_work) {
        EXPECT_FALSE(running.contains("step")) << what << " began beside it";
        EXPECT_TRUE(what != "step" || running.empty()) << "beside " << *running.begin();
        EXPECT_TRUE(running.insert(what).second) << what << " twice at a time";
      }
      if (what.ends_with(" ends")) running.erase(what.substr(0, what.find(' ')));
    }
  }

  static constexpr LeaseId kLease{5};

  FakeCuda cuda_;
  Record record_;
  StandingClock clock_;
  std::unique_ptr<Device> device_;
  IdleMemory memory_;
  HostBlockHasher hasher_;
  ModuleStore store_;
  ModuleLibrary modules_;
  MathLibraries libraries_;
  KernelOutput output_;
  SessionEvents events_;
  std::string why_lost_;                                       // after the loop's end
  std::atomic<absl::StatusCode> code_{absl::StatusCode::kOk};  // of the latest answer
  MemoryDirectory directory_;
  SessionRegistry registry_;
  std::unique_ptr<NodeWindows> windows_;
  std::unique_ptr<PeerPools> peer_pools_;
  Consolidation consolidation_{registry_, memory_};
  OtherTask other_{record_};
  ExecutorLoop loop_;
  std::uint64_t posted_ = 0;
  std::thread thread_;
  ExitStatus end_ = ExitStatus::kFailure;
};

TEST_F(ExecutorLoopTest, ASessionsOperationsRunInOrderBesideThoseOfOthers) {
  record_.Hold("1");
  const std::string first = PostWork(1);
  const std::string second = PostWork(1);
  ASSERT_TRUE(record_.Await("1"));
  ASSERT_TRUE(record_.Await(PostWork(2)));
  ASSERT_TRUE(record_.Await(PostWork(3)));
  EXPECT_EQ(std::ranges::count(record_.noted(), "1"), 1);
  record_.LetGo("1");
  ASSERT_TRUE(record_.Await(second));
  std::vector<std::string> answers = record_.noted();
  std::erase_if(answers, [&](const auto& what) { return what != first && what != second; });
  EXPECT_THAT(answers, ElementsAre(first, second));
  ExpectThatStepsWereAlone();
}

TEST_F(ExecutorLoopTest, ConsolidatesOnceItHasBeenQuiet) {
  EXPECT_THAT(record_.noted(), Not(Contains("step")));
  clock_.Pass(kLong);
  ASSERT_TRUE(record_.Await("step"));
  // There was nothing to gain, and is not before something has happened.
  clock_.Pass(kLong);
  ASSERT_TRUE(record_.Await(PostPing()));
  ASSERT_TRUE(record_.Await(PostWork(1)));
  clock_.Pass(kLong);
  ASSERT_TRUE(record_.Await("step", 2));
  PostShutdown();
  EXPECT_EQ(End(), ExitStatus::kShutdown);
  EXPECT_EQ(Steps(), 2);
  ExpectThatStepsWereAlone();
}

TEST_F(ExecutorLoopTest, GoesOnAsLongAsThereIsSomethingToGain) {
  memory_.plans = {1, 2};
  clock_.Pass(kLong);
  ASSERT_TRUE(record_.Await("step", 3));
  PostShutdown();
  EXPECT_EQ(End(), ExitStatus::kShutdown);
  EXPECT_EQ(Steps(), 3);
  EXPECT_EQ(std::ranges::count(record_.noted(), "move"), 3);
  EXPECT_EQ(std::ranges::count(record_.noted(), "memory is free"), 2);
}

TEST_F(ExecutorLoopTest, OfIdleTasksTheFirstThatGainsGoesOn) {
  memory_.plans = {1};
  other_.gains = 1;
  clock_.Pass(kLong);
  ASSERT_TRUE(record_.Await("other", 2));
  std::vector<std::string> steps = record_.noted();
  std::erase_if(steps, [](const auto& what) { return what != "step" && what != "other"; });
  EXPECT_THAT(steps, ElementsAre("step", "step", "other", "other"));
}

TEST_F(ExecutorLoopTest, AnIdleTaskHasATimeOfItsOwn) {
  clock_.Pass(OtherTask::kQuiet);
  ASSERT_TRUE(record_.Await("other"));
  EXPECT_THAT(record_.noted(), Not(Contains("step")));
}

TEST_F(ExecutorLoopTest, AnIdleTaskThatWantsToLooksAgain) {
  other_.looks_again = true;
  clock_.Pass(kLong);
  ASSERT_TRUE(record_.Await("other"));
  clock_.Pass(kLong);
  ASSERT_TRUE(record_.Await(PostPing()));
  EXPECT_EQ(std::ranges::count(record_.noted(), "other"), 1);
  clock_.Pass(OtherTask::kInterval);
  ASSERT_TRUE(record_.Await("other", 2));
  EXPECT_EQ(Steps(), 1) << "nothing has happened";
}

TEST_F(ExecutorLoopTest, NothingIsConsolidatedBesideAnOperation) {
  BeginLease(1);
  record_.Hold("2");
  PostWork(2);
  ASSERT_TRUE(record_.Await("2"));
  // The loop waits until it is time to look after the lease again. Meanwhile this ends, without a
  // message yet, and when the loop looks what the time is nothing has come for long.
  const auto end_lease = [this] {
    EXPECT_TRUE((*registry_.Find({1}))->EndLease(kLease, TimePoint::max()).ok());
    clock_.Pass(kLong);
  };
  clock_.AtNextReadings({end_lease, [this] { record_.Note("looked"); }});
  ASSERT_TRUE(record_.Await("looked"));
  ASSERT_TRUE(record_.Await(PostWork(3)));
  record_.LetGo("2");
  PostShutdown();
  EXPECT_EQ(End(), ExitStatus::kShutdown);
  ExpectThatStepsWereAlone();
}

TEST_F(ExecutorLoopTest, NothingIsConsolidatedUnderALease) {
  BeginLease(1);
  clock_.Pass(kLong);
  AwaitWatch();
  EXPECT_THAT(record_.noted(), Not(Contains("step")));
  ASSERT_TRUE(record_.Await(PostEndOfLease(1)));
  clock_.Pass(kLong);
  ASSERT_TRUE(record_.Await("step"));
}

TEST_F(ExecutorLoopTest, WhatComesDuringAStepBeginsWhenItHasEnded) {
  record_.Hold("step");
  clock_.Pass(kLong);
  ASSERT_TRUE(record_.Await("step"));
  const std::string first = PostWork(1);
  const std::string second = PostWork(2);
  ASSERT_TRUE(record_.Await(PostPing())) << "it lives";
  EXPECT_THAT(record_.noted(), Not(Contains("1")));
  record_.LetGo("step");
  EXPECT_TRUE(record_.Await(first) && record_.Await(second));
  ExpectThatStepsWereAlone();
}

TEST_F(ExecutorLoopTest, AStepMakesWayForWhoComes) {
  memory_.plans = {2};
  record_.Hold("step");
  clock_.Pass(kLong);
  ASSERT_TRUE(record_.Await("step"));
  const std::string operation = PostWork(1);
  ASSERT_TRUE(record_.Await(PostPing()));
  record_.LetGo("step");
  ASSERT_TRUE(record_.Await(operation));
  EXPECT_THAT(record_.noted(), Not(Contains("move")));
}

TEST_F(ExecutorLoopTest, PagesAreLetGoOfOnlyWhileNobodyWorks) {
  v1::DaemonMessage release;
  release.mutable_release_image()->set_session_id(2);
  release.mutable_release_image()->mutable_extent()->set_bytes(2 * kMiB);
  release.mutable_release_image()->set_only_when_idle(true);
  BeginLease(1);
  ASSERT_TRUE(record_.Await(Post(release)));
  EXPECT_EQ(code_, absl::StatusCode::kAborted);
  ASSERT_TRUE(record_.Await(PostEndOfLease(1)));
  ASSERT_TRUE(record_.Await(Post(release)));
  EXPECT_EQ(code_, absl::StatusCode::kOk);
}

TEST_F(ExecutorLoopTest, EndsWhenWhatRunsHasEnded) {
  record_.Hold("1");
  const std::string operation = PostWork(1);
  ASSERT_TRUE(record_.Await("1"));
  const std::string shutdown = PostShutdown();
  ASSERT_TRUE(record_.Await(PostPing()));
  EXPECT_THAT(record_.noted(), Not(Contains(shutdown)));
  record_.LetGo("1");
  EXPECT_EQ(End(), ExitStatus::kShutdown);
  EXPECT_THAT(record_.noted(), Contains(operation));
  EXPECT_EQ(record_.noted().back(), shutdown);
}

// Closing every session would unmap a GPU's memory piece by piece.
TEST_F(ExecutorLoopTest, NothingBeginsAfterTheShutdown) {
  record_.Hold("1");
  PostWork(1);
  const std::string waiting = PostWork(1);
  ASSERT_TRUE(record_.Await("1"));
  const std::string shutdown = PostShutdown();
  const std::string late = PostWork(2);
  ASSERT_TRUE(record_.Await(PostPing()));
  record_.LetGo("1");
  EXPECT_EQ(End(), ExitStatus::kShutdown);
  EXPECT_THAT(record_.noted(), Contains(waiting)) << "it came before";
  EXPECT_THAT(record_.noted(), Not(Contains("2")));
  EXPECT_THAT(record_.noted(), Not(Contains(late)));
  EXPECT_EQ(record_.noted().back(), shutdown);
}

TEST_F(ExecutorLoopTest, EndsAtOnceWhenTorpordHasGone) {
  record_.Hold("1");
  PostWork(1);
  ASSERT_TRUE(record_.Await("1"));
  EXPECT_EQ(End(DaemonGone{"gone"}), ExitStatus::kDaemonLost);
}

TEST_F(ExecutorLoopTest, AnArrivalIsPassedOn) {
  loop_.OnArrival({2}, {}, {});
  EXPECT_TRUE(record_.Await("arrival of 2"));
}

TEST_F(ExecutorLoopTest, AnOperationThatShowsThatTheContextIsLostEndsIt) {
  memory_.result = CUDA_ERROR_ILLEGAL_ADDRESS;
  const std::string operation = PostWork(2);
  EXPECT_EQ(End(), ExitStatus::kContextLost);
  EXPECT_THAT(record_.noted(), Contains(operation));
  EXPECT_EQ(record_.noted().back(), "lost by 2");
}

TEST_F(ExecutorLoopTest, ALostContextIsNoticedUnderALeaseAndIsItsHoldersFault) {
  BeginLease(3);
  watched = CUDA_ERROR_ILLEGAL_ADDRESS;
  EXPECT_EQ(End(), ExitStatus::kContextLost);
  EXPECT_EQ(record_.noted().back(), "lost by 3");
}

TEST_F(ExecutorLoopTest, AFaultThatOnlyWorkMeetsIsNoticed) {
  BeginLease(3);
  recorded = CUDA_ERROR_ILLEGAL_ADDRESS;
  EXPECT_EQ(End(), ExitStatus::kContextLost);
  EXPECT_EQ(record_.noted().back(), "lost by 3");
}

TEST_F(ExecutorLoopTest, AnErrorOfTheIdleWatchIsTheContextsWhateverItsCode) {
  BeginLease(3);
  watched = CUDA_ERROR_SYSTEM_NOT_READY;
  EXPECT_EQ(End(), ExitStatus::kContextLost);
}

TEST_F(ExecutorLoopTest, AnErrorThatMayMeanTheLossOfTheContextIsLookedInto) {
  memory_.result = CUDA_ERROR_UNKNOWN;
  ASSERT_TRUE(record_.Await(PostWork(2)));
  const std::string second = PostWork(2);
  EXPECT_TRUE(record_.Await(second)) << "the context is intact";
  recorded = CUDA_ERROR_UNKNOWN;
  PostWork(2);
  EXPECT_EQ(End(), ExitStatus::kContextLost);
  EXPECT_EQ(record_.noted().back(), "lost by 2");
}

TEST_F(ExecutorLoopTest, TheLossOfTheContextIsToldWithTheDriversWords) {
  std::fflush(stdout);
  const UniqueFd standard_output(dup(STDOUT_FILENO));
  ASSERT_TRUE(output_.TakeOver(cuda_.driver()).ok());
  cuda_.Say("Assertion `a < b` failed.");
  BeginLease(3);
  watched = CUDA_ERROR_ASSERT;
  EXPECT_EQ(End(), ExitStatus::kContextLost);
  std::fflush(stdout);
  dup2(standard_output.get(), STDOUT_FILENO);
  EXPECT_TRUE(why_lost_.ends_with("\nAssertion `a < b` failed.")) << why_lost_;
}

}  // namespace
}  // namespace torpor::executor

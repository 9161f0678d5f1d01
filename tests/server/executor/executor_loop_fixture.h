#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "server/executor/executor_loop.h"
#include "server/executor/session/consolidation.h"
#include "tests/server/executor/idle_memory.h"
#include "tests/server/executor/loop_record.h"
#include "tests/server/executor/session/session_fixture.h"

// The thread that decides, with memory of the test's own: what operations and consolidation do here
// is to wait until the test lets them go on.
namespace torpor::executor {

// Where nothing of a process without much memory lies, not even ThreadSanitizer's; no session is
// opened here.
inline constexpr server::NodeAddresses kNode = {0x5530'0000'0000, kGiB, 0x5540'0000'0000,
                                                server::kHostSegmentBytes};
inline constexpr Duration kLong = std::chrono::seconds(1);  // for the loop to find it quiet

// An idle task whose steps are noted as "other". The loop asks when to look again once a step
// without gain has ended: "other waits".
class OtherTask final : public IdleTask {
 public:
  explicit OtherTask(Record& record) : record_(record) {}

  const char* name() const override { return "something else"; }
  Duration quiet_time() const override { return kQuiet; }
  std::optional<Duration> look_again_after() const override {
    if (!looks_again) return std::nullopt;
    record_.Note("other waits");
    return kInterval;
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
inline std::atomic<CUresult> watched = CUDA_SUCCESS;
inline std::atomic<CUresult> recorded = CUDA_SUCCESS;
inline std::atomic<int> watches = 0;

// The loop's threads use streams at the same time, which FakeCuda does not allow.
inline CudaDriver WithIdleStreams(CudaDriver driver) {
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
        tenants_(*TenantMemories::Reserve(*device_, kNode.device_bytes)),
        peer_pools_(*PeerPools::Start(*device_)),
        loop_({Environment(),
               registry_,
               directory_,
               *windows_,
               *tenants_,
               *peer_pools_,
               domain_,
               nullptr,
               "",
               kPatience,
               {}},
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
    if (thread_.joinable()) End(DaemonGone{"the test ends", /*is_final=*/true});
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

  void AwaitNext(Duration patience) override {
    record_.Note("awaits " + std::to_string(patience / std::chrono::milliseconds(1)) + " ms");
  }
  void RegisterAgain() override {
    record_.Note("registers with " + std::to_string(registry_.All().size()) + " sessions");
  }

  // Returns the name of the operation's answer in the record.
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
  void PostOutlive(std::uint64_t patience_ms) {
    v1::DaemonMessage operation;
    operation.mutable_outlive()->set_patience_ms(patience_ms);
    ASSERT_TRUE(record_.Await(Post(operation)));
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
  std::unique_ptr<TenantMemories> tenants_;
  std::unique_ptr<PeerPools> peer_pools_;
  ServedDomain domain_{[](const std::string&) {}};
  Consolidation consolidation_{registry_, memory_};
  OtherTask other_{record_};
  ExecutorLoop loop_;
  std::uint64_t posted_ = 0;
  std::thread thread_;
  ExitStatus end_ = ExitStatus::kFailure;
};

}  // namespace torpor::executor

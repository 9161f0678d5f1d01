#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include "client_shim/core/call_tracer.h"
#include "tests/client_shim/core/session/session_fixture.h"

// What a session tells the tracer.
namespace torpor::shim {
namespace {

class NotingTracer final : public CallTracer {
 public:
  void BeginCall(const char*) noexcept override {}
  void EndCall() noexcept override {}
  void BeginWait(TracedWaitFor what) noexcept override {
    const std::lock_guard lock(mutex_);
    waits_.push_back(what);
    ++open_waits_;
  }
  void EndWait() noexcept override {
    const std::lock_guard lock(mutex_);
    --open_waits_;
  }
  void NoteCommand(std::uint64_t bytes) noexcept override {
    const std::lock_guard lock(mutex_);
    commands_.push_back(bytes);
  }
  void NoteBytes(std::uint64_t, std::uint64_t) noexcept override {}
  void NoteBatch() noexcept override {
    const std::lock_guard lock(mutex_);
    ++batches_;
  }
  void BeginSection(const char* name) noexcept override {
    const std::lock_guard lock(mutex_);
    sections_.emplace_back(name ? name : "");
  }

  // Whether the program has so waited, and waits no more.
  bool HasWaited(TracedWaitFor what) const {
    const std::lock_guard lock(mutex_);
    return open_waits_ == 0 && std::count(waits_.begin(), waits_.end(), what) > 0;
  }
  std::vector<std::uint64_t> commands() const {
    const std::lock_guard lock(mutex_);
    return commands_;
  }
  int batches() const {
    const std::lock_guard lock(mutex_);
    return batches_;
  }
  std::vector<std::string> sections() const {
    const std::lock_guard lock(mutex_);
    return sections_;
  }

 private:
  mutable std::mutex mutex_;
  int open_waits_ = 0;
  int batches_ = 0;
  std::vector<TracedWaitFor> waits_;
  std::vector<std::uint64_t> commands_;
  std::vector<std::string> sections_;
};

class SessionTraceTest : public SessionTest {
 protected:
  SessionTraceTest() : before_(torpor_call_tracer.exchange(&tracer_)) {}
  ~SessionTraceTest() override {
    process_.reset();
    torpor_call_tracer.store(before_);
  }

  NotingTracer tracer_;
  CallTracer* const before_;
};

TEST_F(SessionTraceTest, CommandsAndTheirBytes) {
  ASSERT_EQ(Start(), cudaSuccess);
  ASSERT_EQ(Launch(), cudaSuccess);
  ASSERT_EQ(Synchronize(), cudaSuccess);
  wire::LaunchKernel launch;
  launch.grid = {1, 1, 1};
  EXPECT_EQ(tracer_.commands(), (std::vector<std::uint64_t>{Encoded(launch).size(), 0}));
  EXPECT_GE(tracer_.batches(), 2) << "one attaches the session to the executor";
}

TEST_F(SessionTraceTest, ASynchronousCallWaitsForTheExecutor) {
  ASSERT_EQ(Start(), cudaSuccess);
  EXPECT_FALSE(tracer_.HasWaited(TracedWaitFor::kExecutor));
  ASSERT_EQ(Synchronize(), cudaSuccess);
  EXPECT_TRUE(tracer_.HasWaited(TracedWaitFor::kExecutor));
  EXPECT_TRUE(tracer_.HasWaited(TracedWaitFor::kLease)) << "the first one";
}

TEST_F(SessionTraceTest, MemoryIsTheDaemons) {
  ASSERT_EQ(Start(), cudaSuccess);
  std::uint64_t address = 0;
  ASSERT_EQ(session_->Malloc(4096, address), cudaSuccess);
  EXPECT_TRUE(tracer_.HasWaited(TracedWaitFor::kDaemon));
  EXPECT_EQ(tracer_.commands(), std::vector<std::uint64_t>());
}

TEST_F(SessionTraceTest, ARequestIsASection) {
  daemon_.set_auto_grant(nullptr);
  ASSERT_EQ(Start(), cudaSuccess);
  const std::uint64_t lease = GrantRequest(*first_);
  EXPECT_EQ(tracer_.sections(),
            std::vector<std::string>{"request (lease " + std::to_string(lease) + ")"});
  daemon_.Send(wire::LeaseRevoke{lease});
  EXPECT_EQ(daemon_.Await<wire::LeaseReturned>().lease_id, lease);
  // The lease ends with the message that the daemon has just got.
  while (tracer_.sections().size() < 2) std::this_thread::yield();
  EXPECT_EQ(tracer_.sections().back(), "");
}

TEST_F(SessionTraceTest, AnImplicitLeaseIsNone) {
  ASSERT_EQ(Start(), cudaSuccess);
  ASSERT_EQ(Synchronize(), cudaSuccess);
  EXPECT_EQ(tracer_.sections(), std::vector<std::string>());
}

}  // namespace
}  // namespace torpor::shim

#pragma once

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "client_shim/core/session/device_session.h"
#include "client_shim/core/session/process_state.h"
#include "proto/cuda_api/cudart_commands.h"
#include "tests/client_shim/fake_daemon.h"
#include "tests/client_shim/fake_executor.h"

namespace torpor::shim {

using testing::FakeDaemon;
using testing::FakeExecutor;
using testing::ReceivedCommand;

inline constexpr auto kAttach = static_cast<std::uint32_t>(wire::ProtocolCall::kAttach);
inline constexpr auto kDrain = static_cast<std::uint32_t>(wire::ProtocolCall::kDrain);
inline constexpr std::chrono::milliseconds kNever{3600 * 1000};

using wire::Encoded;

inline std::vector<std::uint32_t> CallIds(const std::vector<ReceivedCommand>& commands) {
  std::vector<std::uint32_t> ids;
  ids.reserve(commands.size());
  for (const ReceivedCommand& command : commands) ids.push_back(command.call_id);
  return ids;
}

// A session's settings, a daemon that answers it and two executors, of which the first is granted.
class SessionTest : public ::testing::Test {
 protected:
  SessionTest() : SessionTest(FakeDaemon::Script{}) {}
  explicit SessionTest(const FakeDaemon::Script& script) : daemon_(script) {
    settings_.socket = daemon_.socket();
    settings_.log = LogLevel::kOff;
    settings_.reconnect_timeout = std::chrono::milliseconds(0);
    settings_.lease_idle = kNever;
    settings_.flush_after = std::chrono::microseconds(200);
    first_ = MakeExecutor("first");
    second_ = MakeExecutor("second");
    daemon_.set_auto_grant(first_.get());
  }

  std::unique_ptr<FakeExecutor> MakeExecutor(const std::string& name) {
    auto executor = std::make_unique<FakeExecutor>(
        daemon_.folder() + "/" + name + ".sock",
        std::set<std::uint32_t>{kAttach, kDrain, wire::DeviceSynchronize::kCallId,
                                wire::StreamSynchronize::kCallId});
    executor->set_page(daemon_.page());
    return executor;
  }

  void MakeSession() {
    process_ = std::make_unique<ProcessState>([this] { return settings_; }, &DeviceSession::Make);
    session_ = &process_->first();
  }
  cudaError_t Start() {
    MakeSession();
    return session_->Start();
  }
  cudaError_t Launch(std::uint32_t grid = 1) {
    wire::LaunchKernel launch;
    launch.grid = {grid, 1, 1};
    const auto fields = Encoded(launch);
    return session_->Enqueue({wire::LaunchKernel::kCallId, fields});
  }
  cudaError_t Synchronize() {
    CallReply reply;
    const cudaError_t error = session_->Call({wire::DeviceSynchronize::kCallId, {}}, reply);
    return error != cudaSuccess ? error : static_cast<cudaError_t>(reply.status);
  }
  // A call, on a thread of its own, that waits for a lease which the daemon does not grant.
  std::future<cudaError_t> CallWithoutLease() {
    daemon_.set_auto_grant(nullptr);
    EXPECT_EQ(Start(), cudaSuccess);
    auto call = std::async(std::launch::async, [this] { return Synchronize(); });
    daemon_.Await<wire::LeaseRequest>();
    return call;
  }
  // Grants the executor for a request. The lease's id, once the session has taken it.
  std::uint64_t GrantRequest(const FakeExecutor& executor) {
    const std::uint64_t lease = daemon_.Grant(executor, /*is_explicit=*/true);
    EXPECT_EQ(daemon_.Await<wire::LeaseAck>().lease_id, lease);
    return lease;
  }
  // Tells the session of the loss; from then on its calls fail with the error.
  void LoseLease(const wire::LeaseLost& lost) {
    daemon_.Send(lost);
    while (Synchronize() == cudaSuccess) std::this_thread::yield();
    EXPECT_EQ(Synchronize(), static_cast<cudaError_t>(lost.error));
    EXPECT_EQ(Launch(), static_cast<cudaError_t>(lost.error));
  }
  std::uint64_t CreateStream() {
    wire::StreamCreate create;
    create.stream = session_->MintHandle(HandleKind::kStream);
    EXPECT_EQ(session_->Create(create.stream, {wire::StreamCreate::kCallId, Encoded(create)}),
              cudaSuccess);
    return create.stream;
  }

  FakeDaemon daemon_;
  std::unique_ptr<FakeExecutor> first_;
  std::unique_ptr<FakeExecutor> second_;
  Settings settings_;
  std::unique_ptr<ProcessState> process_;
  ClientCore* session_ = nullptr;  // the process's first
};

}  // namespace torpor::shim

#include "tests/server/controller/controller_harness.h"

#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "scheduler/replay.h"
#include "server/controller/scheduler_setup.h"

namespace torpor::server {

ControllerHarness::ControllerHarness(int gpus, AddressMode address_mode,
                                     const std::function<void(Config&)>& configure) {
  Controller::Options& options = options_;
  for (const char* name : {"a", "b", "c"}) {
    FunctionConfig function;
    function.name = name;
    function.memory_limit = 48 * kMiB;
    function.durability = Durability::kNone;
    function.upstream = "127.0.0.1:9001";
    options.config.functions[name] = function;
  }
  if (gpus > 1) {
    options.config.functions["pair"] = options.config.functions["a"];
    options.config.functions["pair"].name = "pair";
    options.config.functions["pair"].gpus = 2;
  }
  options.config.functions["c"].max_in_flight = 2;
  options.config.functions["c"].durability = Durability::kEviction;
  options.config.functions["b"].is_stateless = true;
  options.config.device.chunk_bytes = kChunk;
  options.config.device.address_mode = address_mode;
  options.config.is_emulated = true;
  options.config.isolation = Isolation::kShared;
  options.config.drain_timeout = std::chrono::hours(1);
  if (configure) configure(options.config);
  config_ = options.config;
  options.tokens = TokensOf(config_);
  options.record = [this](TimePoint when, const scheduler::Event& event,
                          const scheduler::Actions& decided) {
    event_log_ += scheduler::Encode(event, when) + '\n';
    for (const scheduler::Action& action : decided) {
      event_log_ += scheduler::Encode(action, when) + '\n';
    }
  };
  options.descriptor_socket = "/nowhere/descriptors.sock";
  for (int gpu = 0; gpu < gpus; ++gpu) options.gpus.push_back(GpuIndex{gpu});
  RestartTorpord();
}

void ControllerHarness::RestartTorpord() {
  executors_.clear();
  controller_.reset();
  loop_.Forget();
  event_log_ = scheduler::Encode(EventLogHeaderOf(options_.config)) + '\n';
  controller_ = std::make_unique<Controller>(options_, loop_, repository_, processes_, counts_);
  controller_->RestoreSessions();
}

std::map<std::string, std::string> ControllerHarness::TokensOf(const Config& config) {
  std::map<std::string, std::string> tokens;
  for (const auto& [name, function] : config.functions) {
    for (const InstanceConfig& instance : InstancesOf(function)) {
      const std::string full_name = FullNameOf(function, instance);
      tokens[full_name] = absl::StrCat("token-", full_name);
    }
  }
  return tokens;
}

void ControllerHarness::Reconfigure(const std::function<void(Config&)>& change) {
  change(config_);
  controller_->Reconfigure(config_, TokensOf(config_));
  Settle();
}

void ControllerHarness::TearDown() {
  std::istringstream log(event_log_);
  const scheduler::ReplayOutcome outcome = scheduler::Replay(log);
  EXPECT_TRUE(outcome.is_same()) << outcome.error;
  EXPECT_GT(outcome.events, 0u);
}

void ControllerHarness::StartExecutor(int gpu) {
  executors_[gpu] = {};
  executors_[gpu].epoch = next_epoch_++;
  controller_->OnExecutorStarting(GpuIndex{gpu}, executors_[gpu].epoch);
  Register(gpu);
}

void ControllerHarness::Register(int gpu) {
  Executor& executor = executors_[gpu];
  executor.link = std::make_shared<FakeExecutorLink>();
  controller_->OnExecutorMessage(executor.link, Registration(gpu, executor.epoch));
  Settle();
}

v1::ExecutorMessage ControllerHarness::Registration(int gpu, std::uint64_t epoch) const {
  v1::ExecutorMessage message;
  auto& what = *message.mutable_register_();
  what.set_gpu(gpu);
  what.set_pid(1000 + gpu);
  what.set_epoch(epoch);
  what.set_pool_bytes(kPool);
  what.set_chunk_bytes(kChunk);
  what.set_socket_path(absl::StrCat("/nowhere/executor-", gpu, ".sock"));
  what.set_peer_socket_path(absl::StrCat("/nowhere/peers-", gpu, ".sock"));
  for (int peer = 0; peer < 4; ++peer) {
    if (peer != gpu) what.add_peers(peer);
    if (peer != gpu && has_links_) what.add_image_sources(peer);
  }
  what.mutable_device()->set_name("Fake GPU");
  what.mutable_device()->set_pci_bus_id(absl::StrCat("0000:", 1 + gpu / 2, gpu % 2, ":00.0"));
  return message;
}

void ControllerHarness::LoseContext(const Client& client, std::int32_t cuda_error) {
  v1::ExecutorMessage message;
  message.mutable_context_lost()->set_session_id(client.hello.session_id);
  message.mutable_context_lost()->set_cuda_error(cuda_error);
  controller_->OnExecutorMessage(executors_[0].link, message);
}

void ControllerHarness::KillExecutor(int gpu) {
  const Executor dead = std::move(executors_[gpu]);
  executors_.erase(gpu);
  controller_->OnExecutorClosed(dead.link);
  controller_->OnExecutorExited(GpuIndex{gpu}, dead.epoch);
  Settle();
}

void ControllerHarness::Settle() {
  bool is_moving = true;
  while (is_moving) {
    loop_.RunAll();
    is_moving = false;
    for (auto& [gpu, executor] : executors_) {
      if (!executor.link || executor.link->operations.empty()) continue;
      const v1::DaemonMessage operation = executor.link->operations.front();
      const std::optional<absl::Status> status =
          answers_ ? answers_(operation) : std::optional(absl::OkStatus());
      if (!status) continue;
      executor.link->operations.pop_front();
      Answer(executor, operation, *status);
      is_moving = true;
      break;
    }
  }
}

void ControllerHarness::Answer(Executor& executor, const v1::DaemonMessage& operation,
                               const absl::Status& status) {
  if (operation.has_open_session()) {
    EXPECT_TRUE(executor.sessions.insert(operation.open_session().session().session_id()).second);
  } else if (operation.has_close_session()) {
    EXPECT_EQ(executor.sessions.erase(operation.close_session().session_id()), 1u);
    executor.resident.erase(operation.close_session().session_id());
    executor.leases.erase(operation.close_session().session_id());
  } else if (operation.has_swap_in() && status.ok()) {
    EXPECT_TRUE(executor.sessions.count(operation.swap_in().session_id()));
    const bool is_new = executor.resident.insert(operation.swap_in().session_id()).second;
    EXPECT_NE(is_new, operation.swap_in().refreshes());
    const bool has_source = !operation.swap_in().source_socket_path().empty();
    if (has_source) executor.sourced.insert(operation.swap_in().session_id());
  } else if (operation.has_swap_out()) {
    const std::uint64_t session = operation.swap_out().session_id();
    EXPECT_TRUE(executor.resident.count(session));
    EXPECT_FALSE(executor.leases.count(session)) << "swap-out under a lease";
    if (operation.swap_out().drop()) {
      executor.resident.erase(session);
      executor.sourced.erase(session);
    }
  } else if (operation.has_grow()) {
    EXPECT_TRUE(executor.resident.count(operation.grow().session_id()));
  } else if (operation.has_begin_lease() && status.ok()) {
    const std::uint64_t session = operation.begin_lease().session_id();
    EXPECT_TRUE(executor.resident.count(session));
    for (const auto& [other, lease] : executor.leases) {
      EXPECT_EQ(lease, operation.begin_lease().lease_id()) << "two leases on a GPU";
    }
    executor.leases[session] = operation.begin_lease().lease_id();
  } else if (operation.has_end_lease()) {
    const std::size_t ended = executor.leases.erase(operation.end_lease().session_id());
    EXPECT_TRUE(ended == 1 || operation.end_lease().is_last());
  } else if (operation.has_map_peer() && status.ok()) {
    const v1::DaemonMessage::MapPeer& what = operation.map_peer();
    EXPECT_FALSE(executor.resident.count(what.session_id())) << "it is the session's own GPU";
    EXPECT_TRUE(what.live().empty() || !what.socket_path().empty());
    Bytes& reached = executor.reached[what.session_id()] = 0;
    for (const v1::Extent& extent : what.live()) reached += extent.bytes();
    if (what.live().empty()) executor.reached.erase(what.session_id());
  }
  v1::ExecutorMessage message;
  message.mutable_operation_done()->set_operation_id(operation.operation_id());
  message.mutable_operation_done()->set_code(static_cast<std::int32_t>(status.code()));
  message.mutable_operation_done()->set_message(std::string(status.message()));
  if (operation.has_swap_in() && executor.sourced.count(operation.swap_in().session_id()) > 0) {
    message.mutable_operation_done()->mutable_from_peer()->set_uploaded(1);
  }
  if (learned_) *message.mutable_operation_done()->mutable_learned() = learned_(operation);
  if (has_more_) message.mutable_operation_done()->set_has_more(has_more_(operation));
  controller_->OnExecutorMessage(executor.link, message);
  if (!operation.has_swap_in() || !status.ok()) return;
  if (completes_swap_ins_ || operation.swap_in().is_whole()) {
    SayComplete(executor, operation.swap_in().session_id());
  }
}

void ControllerHarness::SayComplete(const Executor& executor, std::uint64_t session) {
  v1::ExecutorMessage complete;
  complete.mutable_swap_in_complete()->set_session_id(session);
  if (executor.sourced.count(session) > 0) {
    complete.mutable_swap_in_complete()->mutable_from_peer()->set_uploaded(1);
  }
  controller_->OnExecutorMessage(executor.link, complete);
}

void ControllerHarness::CompleteSwapIn(int gpu, const Client& client) {
  SayComplete(executors_[gpu], client.hello.session_id);
  Settle();
}

ControllerHarness::Client ControllerHarness::Hello(const std::string& token) {
  Client client;
  client.link = std::make_shared<FakeSessionLink>();
  wire::Hello hello;
  hello.token = token;
  hello.process_id = 4711;
  hello.program = "test";
  Say(client, hello);
  return client;
}

ControllerHarness::Client ControllerHarness::Connect(const std::string& token) {
  return Open(Hello(token));
}

ControllerHarness::Client ControllerHarness::HelloForDevice(const std::string& token,
                                                            const Client& first, int device) {
  Client client;
  client.link = std::make_shared<FakeSessionLink>();
  wire::DeviceHello hello;
  hello.hello.token = token;
  hello.primary_session = first.hello.session_id;
  hello.primary_key = first.hello.session_key;
  hello.device = device;
  Say(client, hello);
  return client;
}

ControllerHarness::Client ControllerHarness::ConnectDevice(const std::string& token,
                                                           const Client& first, int device) {
  return Open(HelloForDevice(token, first, device));
}

ControllerHarness::Client ControllerHarness::Open(Client client) {
  const auto reply = client.link->Take<wire::HelloReply>();
  EXPECT_TRUE(reply && reply->error == 0);
  if (reply) client.hello = *reply;
  Say(client, wire::HelloAck{});
  return client;
}

std::optional<wire::MemoryReply> ControllerHarness::Malloc(Client& client, Bytes bytes) {
  Say(client, wire::Malloc{client.next_request++, bytes});
  return client.link->Take<wire::MemoryReply>();
}

std::optional<wire::MemoryReply> ControllerHarness::Free(Client& client, std::uint64_t address) {
  Say(client, wire::Free{client.next_request++, address});
  return client.link->Take<wire::MemoryReply>();
}

RequestId ControllerHarness::Acquire(const std::string& function, Duration patience) {
  const RequestId request{next_request_++};
  controller_->Acquire(
      request,
      {.function = function,
       .id = absl::StrCat("request-", request.value),
       .give_up = loop_.Now() + patience},
      [this, request](absl::StatusOr<RequestGrant> grant) {
        EXPECT_FALSE(outcomes_[request].grant) << "answered twice";
        outcomes_[request].grant = std::move(grant);
      },
      [this, request](absl::Status status) {
        EXPECT_FALSE(outcomes_[request].lost) << "lost twice";
        outcomes_[request].lost = std::move(status);
      });
  Settle();
  return request;
}

std::optional<wire::LeaseGrant> ControllerHarness::TakeLease(const Client& client) {
  auto grant = client.link->Take<wire::LeaseGrant>();
  if (grant) Say(client, wire::LeaseAck{grant->lease_id});
  return grant;
}

bool ControllerHarness::GiveBack(const Client& client) {
  const auto revoke = client.link->Take<wire::LeaseRevoke>();
  if (revoke) Say(client, wire::LeaseReturned{revoke->lease_id});
  return revoke.has_value();
}

void ControllerHarness::Serve(const std::string& function, const Client& client) {
  const RequestId request = Acquire(function);
  ASSERT_TRUE(TakeLease(client)) << function;
  ASSERT_TRUE(IsRunning(request)) << function;
  Release(request);
  ASSERT_TRUE(GiveBack(client)) << function;
}

}  // namespace torpor::server

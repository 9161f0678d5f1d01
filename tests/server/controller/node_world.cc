#include "tests/server/controller/node_world.h"

#include "absl/strings/str_cat.h"
#include "scheduler/policies.h"

namespace torpor::server {

Config NodeWorld::MakeConfig() {
  Config config;
  for (const char* name : {"a", "pair"}) {
    config.functions[name].name = name;
    config.functions[name].memory_limit = 48 * kMiB;
    config.functions[name].durability = Durability::kNone;
    config.functions[name].upstream = "127.0.0.1:9001";
  }
  config.functions["pair"].gpus = 2;
  config.device.chunk_bytes = kChunk;
  return config;
}

NodeWorld::NodeWorld()
    : tables_({GpuIndex{0}, GpuIndex{1}}, loop_, processes_),
      host_(tables_, *stranger_, events_, loop_,
            {.addresses = AddressesOf(config_),
             .address_range = config_.session.address_range,
             .chunk_bytes = kChunk},
            {}, {.after = kRest}, nullptr, nullptr),
      storage_(kMiB, host_.segments, host_.spills, host_.sharing, repository_, loop_) {
  for (const auto& [name, function] : config_.functions) {
    RegisteredFunction& registered = tables_.instances.AddFunction(function);
    for (const InstanceConfig& instance : InstancesOf(function)) {
      tables_.instances.AddInstance(registered, instance).token = "token-" + name;
    }
  }
  for (int gpu = 0; gpu < 2; ++gpu) {
    links_.push_back(std::make_shared<FakeExecutorLink>());
    v1::ExecutorMessage::Register what;
    what.set_pool_bytes(kPool);
    what.set_peer_socket_path(absl::StrCat("/nowhere/peers-", gpu, ".sock"));
    what.add_peers(1 - gpu);
    GpuExecutor& executor = tables_.executors.At(GpuIndex{gpu});
    executor.OnStarting(static_cast<std::uint64_t>(gpu) + 1);
    tables_.executors.Attach(executor, links_.back(), what);
    executor.OnRecovered();
  }
}

std::unique_ptr<scheduler::Scheduler> NodeWorld::MakeScheduler() {
  scheduler::Policies policies;
  policies.queue = scheduler::MakeFifoQueue();
  policies.placement = scheduler::MakeResidentFirstPlacement();
  policies.eviction = scheduler::MakeLruEviction();
  auto scheduler = std::make_unique<scheduler::Scheduler>(std::move(policies));
  const TimePoint now = loop_.Now();
  for (const auto& [id, instance] : tables_.instances) {
    scheduler->OnEvent(scheduler::FunctionSet{.function = instance.function->id}, now);
    scheduler->OnEvent(scheduler::InstanceAdded{.instance = id,
                                                .secondary_shards = {instance.shards.begin() + 1,
                                                                     instance.shards.end()},
                                                .function = instance.function->id},
                       now);
  }
  for (const int gpu : {0, 1}) {
    scheduler->OnEvent(scheduler::ExecutorUp{.gpu = GpuIndex{gpu}, .capacity = kPool}, now);
  }
  return scheduler;
}

SessionPtr NodeWorld::AddSession(const std::string& function, int device,
                                 const SessionPtr& primary) {
  SessionPtr session = tables_.sessions.OfLink(std::make_shared<FakeSessionLink>());
  FunctionInstance& instance = InstanceOf(function);
  session->state = ClientSession::State::kOpen;
  session->instance = instance.id;
  session->primary = primary ? primary->id : session->id;
  session->device_index = device;
  session->is_announced = true;
  EXPECT_TRUE(
      storage_.Create(*session, instance.config().memory_limit, instance.config().tenant).ok());
  instance.sessions.insert(session->id);
  return session;
}

InstanceLease& NodeWorld::GiveLease(const std::string& function, bool is_explicit) {
  FunctionInstance& instance = InstanceOf(function);
  InstanceLease& lease = instance.lease.emplace();
  lease.id = LeaseId{7};
  lease.is_explicit = is_explicit;
  lease.since = loop_.Now();
  for (int gpu = 0; gpu < instance.config().gpus; ++gpu) lease.gpus.push_back(GpuIndex{gpu});
  for (const SessionPtr& session : tables_.sessions.Of(instance)) {
    session->lease.id = lease.id;
    lease.participants[session->id] = ParticipantState::kAcked;
  }
  return lease;
}

void NodeWorld::Land(const SessionPtr& session, int gpu) {
  session->image.BeginArrival(GpuIndex{gpu});
  session->image.Land(GpuIndex{gpu});
  EXPECT_TRUE(session->image.EndArrival().empty());
}

void NodeWorld::Answer(int gpu, const absl::Status& status, const Edit& edit) {
  v1::ExecutorMessage::OperationDone done;
  done.set_operation_id(Operation(gpu).operation_id());
  done.set_code(static_cast<std::int32_t>(status.code()));
  done.set_message(std::string(status.message()));
  if (edit) edit(done);
  Link(gpu).operations.pop_front();
  tables_.executors.At(GpuIndex{gpu}).OnOperationDone(done, loop_.Now());
  loop_.RunAll();
}

void NodeWorld::Settle() {
  loop_.RunAll();
  while (!IsQuiet(0) || !IsQuiet(1)) Answer(IsQuiet(0) ? 1 : 0);
}

void NodeWorld::KillExecutor(int gpu) {
  const auto unanswered = tables_.executors.Detach(tables_.executors.At(GpuIndex{gpu}));
  for (const SessionPtr& session : tables_.sessions.Of(InstanceOf("a"))) {
    session->image.LoseExecutor(GpuIndex{gpu});
  }
  for (const auto& [id, done] : unanswered) done(OperationResult::Lost());
  loop_.RunAll();
}

}  // namespace torpor::server

#include "server/admin/admin_server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>

#include <algorithm>
#include <vector>

#include "base/status_macros.h"
#include "proto/torpor/v1/admin.grpc.pb.h"
#include "scheduler/event_fields.h"
#include "server/admin/admin_peers.h"
#include "server/unix_socket/grpc_server.h"
#include "server/version/version.h"

namespace torpor::server {
namespace {

constexpr mode_t kSocketMode = 0660;

void Fill(const GpuSnapshot& gpu, v1::GpuStatus& status) {
  status.set_gpu(gpu.gpu);
  status.set_name(gpu.name);
  status.set_uuid(gpu.uuid);
  status.set_state(gpu.state);
  status.set_executor_pid(gpu.executor_pid);
  for (const ExecutorSnapshot& executor : gpu.executors) {
    v1::ExecutorStatus& one = *status.add_executors();
    one.set_pid(executor.pid);
    one.set_state(executor.state);
    one.set_domain(executor.domain);
    one.mutable_not_confined()->Assign(executor.not_confined.begin(), executor.not_confined.end());
  }
  status.set_spare_pid(gpu.spare_pid);
  status.set_pool_owner_pid(gpu.pool_owner_pid);
  status.set_pool_bytes(gpu.pool_bytes);
  status.set_used_bytes(gpu.used_bytes);
  status.set_swap_group_bytes(gpu.swap_group_bytes);
  status.set_link_bytes_per_second(gpu.link_bytes_per_second);
  status.set_executor_restarts(gpu.executor_restarts);
  status.set_busy_seconds(gpu.busy_seconds);
  status.set_leased_to(gpu.leased_to);
}

void Fill(const MemorySnapshot& memory, v1::MemoryStatus& status) {
  status.set_used_bytes(memory.used);
  status.set_cached_bytes(memory.cached);
  status.set_replica_bytes(memory.replicas);
}

void Fill(const NodeSnapshot& node, const GpuSnapshot& gpu, v1::GpuMemory& status) {
  status.set_gpu(gpu.gpu);
  status.set_state(gpu.state);
  status.set_pool_bytes(gpu.pool_bytes);
  Fill(gpu.memory, *status.mutable_memory());
  status.set_free_bytes(gpu.free_bytes);
  status.set_fragmented_bytes(gpu.fragmented_bytes);
  for (const FunctionSnapshot& function : node.functions) {
    const auto found = function.memory.find(gpu.gpu);
    if (found == function.memory.end()) continue;
    v1::FunctionMemory& memory = *status.add_functions();
    memory.set_name(function.name);
    Fill(found->second, *memory.mutable_memory());
  }
}

void Fill(const SpillFigures::Moves& moves, v1::SpillMoves& status) {
  status.set_images(moves.images);
  status.set_bytes(moves.bytes);
  status.set_seconds(ToSeconds(moves.duration));
  status.set_failures(moves.failures);
}

void Fill(const SpillFigures& spills, v1::SpillStatus& status) {
  status.set_limit_bytes(spills.limit);
  status.set_bytes(spills.bytes);
  status.set_images(spills.images);
  Fill(spills.out, *status.mutable_out());
  Fill(spills.back, *status.mutable_back());
}

void Fill(const ObjectiveSnapshot& objective, v1::FunctionStatus& status) {
  status.set_deadline_ms(ToMilliseconds(objective.deadline));
  status.set_percentile(objective.percentile);
  status.set_priority(objective.priority);
  status.set_max_waiting(static_cast<std::uint32_t>(objective.max_waiting));
  status.set_keep_alive_ms(ToMilliseconds(objective.keep_alive));
  status.set_waiting(objective.waiting);
  status.set_finished(objective.finished);
  status.set_in_time(objective.in_time);
  status.set_is_compliant(objective.is_compliant());
  if (objective.required_count) status.set_required_count(*objective.required_count);
  status.set_is_first_group(objective.is_first_group);
}

// Fills the fields that instances and functions, their sums, have both.
template <typename Status>
void FillInstance(const InstanceSnapshot& instance, Status& status) {
  status.set_name(instance.name);
  status.set_state(instance.state);
  status.set_health(instance.health);
  status.set_upstream(instance.upstream);
  for (const int gpu : instance.resident_gpus) status.add_resident_gpus(gpu);
  status.set_image_bytes(instance.image_bytes);
  status.set_sessions(instance.sessions);
  status.set_requests(instance.requests);
  status.set_gpu_seconds(instance.gpu_seconds);
  status.set_swaps_in(instance.swaps_in);
  status.set_is_pinned(instance.is_pinned);
  if (instance.process.state.empty()) return;
  v1::ProcessStatus& process = *status.mutable_process();
  process.set_state(instance.process.state);
  process.set_pid(instance.process.pid);
  process.set_restarts(instance.process.restarts);
  process.set_last_end(instance.process.last_end);
}

void Fill(const FunctionSnapshot& function, v1::FunctionStatus& status) {
  FillInstance(function, status);
  status.set_memory_limit_bytes(function.memory_limit);
  status.set_errors(function.errors);
  status.set_strikes(function.strikes);
  status.set_refused_ms(ToMilliseconds(function.refused_for));
  Fill(function.objective, status);
  for (const InstanceSnapshot& instance : function.instances) {
    FillInstance(instance, *status.add_instances());
  }
}

std::string StateOf(const RequestTrace& trace) {
  if (trace.ended) return std::string(scheduler::WordOf(trace.ending));
  return trace.granted ? "running" : "waiting";
}

void Fill(const Delay& delay, v1::Explanation& explanation) {
  explanation.set_gpu_wait_ms(ToMilliseconds(delay.all()));
  explanation.set_own_lease_wait_ms(ToMilliseconds(delay.own_lease));
  explanation.set_chosen_wait_ms(ToMilliseconds(delay.by_choice));
  explanation.set_busy_wait_ms(ToMilliseconds(delay.no_gpu));
  if (delay.awaited) explanation.set_awaited_gpu(delay.awaited->value);
  explanation.set_has_revoked(delay.has_revoked);
  explanation.set_is_late(delay.is_late);
  explanation.set_is_beyond_rescue(delay.is_beyond_rescue);
  const auto fill = [](const auto& others, auto& rows) {
    for (const auto& [function, requests] : others) {
      v1::Explanation::Others& row = *rows.Add();
      row.set_function(function);
      row.set_requests(requests);
    }
  };
  fill(delay.earlier, *explanation.mutable_earlier());
  fill(delay.overtakers, *explanation.mutable_overtakers());
}

void Fill(const RequestTrace& trace, const InstancePlacement& placement,
          v1::Explanation& explanation) {
  // A request that joins a lease, or arrives while the image comes, has waited less.
  const TimePoint placed = *trace.decided;
  const TimePoint sent_for = std::max(placed, placement.swap_in.value_or(placed));
  explanation.set_room_wait_ms(ToMilliseconds(sent_for - placed));
  explanation.set_image_wait_ms(ToMilliseconds(*trace.granted - sent_for));
  explanation.set_run_ms(ToMilliseconds(trace.as_of - *trace.granted));
  explanation.set_gpu(trace.gpu->value);
  explanation.set_source(NameOf(placement.source));
  if (placement.peer) explanation.set_peer_gpu(placement.peer->value);
  for (const InstancePlacement::Neighbour& near : placement.loading_nearby) {
    v1::Explanation::Neighbour& neighbour = *explanation.add_loading_nearby();
    neighbour.set_gpu(near.gpu.value);
    neighbour.set_function(near.function);
  }
  for (const std::string& function : placement.evicted) explanation.add_evicted(function);
}

void Fill(const RequestTrace& trace, v1::Explanation& explanation) {
  explanation.set_request_id(trace.id);
  explanation.set_function(trace.function);
  explanation.set_instance(trace.instance);
  explanation.set_state(StateOf(trace));
  explanation.set_why(trace.why);
  explanation.set_waiting_before(trace.waiting_before);
  if (trace.standing) {
    explanation.set_required_count(trace.standing->required_count);
    explanation.set_is_first_group(trace.standing->is_high);
    explanation.set_alpha(trace.standing->alpha);
  }
  explanation.set_has_joined(trace.joined.has_value());
  explanation.set_total_ms(ToMilliseconds(trace.as_of - trace.arrival));
  explanation.set_deadline_ms(ToMilliseconds(trace.deadline));
  if (const std::optional<bool> in_time = trace.in_time()) {
    explanation.set_counts_as(*in_time ? "met" : "missed");
  }
  Fill(trace.delay, explanation);
  if (trace.granted && trace.gpu) Fill(trace, trace.placement, explanation);
}

// Reads an addition or a change of settings.
template <typename Request>
ConfigRequest ToConfigRequest(ConfigRequest::Kind kind, const Request& request) {
  ConfigRequest read{.kind = kind, .function = request.function()};
  for (const v1::Setting& setting : request.settings()) {
    read.settings.emplace_back(setting.name(), setting.value());
  }
  return read;
}

ConfigRequest ToConfigRequest(const v1::ConfigureRequest& request) {
  using Kind = ConfigRequest::Kind;
  if (request.has_add()) return ToConfigRequest(Kind::kAdd, request.add());
  if (request.has_apply()) {
    const v1::ApplyText& apply = request.apply();
    return {.kind = Kind::kApply,
            .text = apply.text(),
            .file_name = apply.file_name(),
            .prune = apply.prune(),
            .is_trial = apply.is_trial()};
  }
  if (request.has_remove()) {
    return {.kind = Kind::kRemove, .function = request.remove().function()};
  }
  return ToConfigRequest(Kind::kSet, request.set());
}

class AdminService final : public v1::Admin::Service {
 public:
  explicit AdminService(AdminServer::Sources sources) : sources_(std::move(sources)) {}

  grpc::Status GetStatus(grpc::ServerContext*, const v1::GetStatusRequest*,
                         v1::NodeStatus* status) override {
    const NodeSnapshot node = sources_.snapshot();
    status->set_version(Version());
    status->set_state(node.state);
    status->set_uptime_seconds(ToSeconds(SteadyClock().Now() - started_));
    for (const GpuSnapshot& gpu : node.gpus) Fill(gpu, *status->add_gpus());
    status->set_policy(node.policy);
    status->set_address_mode(node.addresses.mode);
    status->set_address_fallback(node.addresses.fallback);
    status->set_address_base(node.addresses.base);
    status->set_address_bytes(node.addresses.bytes);
    status->set_free_address_bytes(node.addresses.free_bytes);
    if (node.alpha) status->set_alpha(*node.alpha);
    status->set_functions(node.functions.size());
    status->set_compliant_functions(static_cast<std::uint64_t>(std::ranges::count_if(
        node.functions,
        [](const FunctionSnapshot& function) { return function.objective.is_compliant(); })));
    status->set_queued_requests(node.queued_requests);
    status->set_sessions(node.sessions);
    status->set_http_address(sources_.http_address);
    status->set_metrics_address(sources_.metrics_address);
    status->set_swaps_in(node.swaps_in);
    status->set_swaps_out(node.swaps_out);
    status->set_host_image_bytes(node.host_image_bytes);
    status->set_host_memory_bytes(node.host_memory.budget);
    status->set_host_memory_used_bytes(node.host_memory.used);
    status->set_host_memory_refusals(node.host_memory.refusals);
    Fill(node.spills, *status->mutable_spills());
    status->mutable_sharing()->set_stored_bytes(node.sharing.stored);
    status->mutable_sharing()->set_used_bytes(node.sharing.used);
    return grpc::Status::OK;
  }

  grpc::Status ListFunctions(grpc::ServerContext*, const v1::ListFunctionsRequest*,
                             v1::ListFunctionsResponse* response) override {
    const NodeSnapshot node = sources_.snapshot();
    for (const FunctionSnapshot& function : node.functions) {
      Fill(function, *response->add_functions());
    }
    return grpc::Status::OK;
  }

  grpc::Status GetMemory(grpc::ServerContext*, const v1::GetMemoryRequest*,
                         v1::NodeMemory* memory) override {
    const NodeSnapshot node = sources_.snapshot();
    for (const GpuSnapshot& gpu : node.gpus) Fill(node, gpu, *memory->add_gpus());
    memory->set_host_image_bytes(node.host_image_bytes);
    return grpc::Status::OK;
  }

  grpc::Status Load(grpc::ServerContext*, const v1::LoadRequest* request,
                    v1::AdminResponse*) override {
    AdminRequest load{.kind = AdminRequest::Kind::kLoad, .function = request->function()};
    if (request->has_gpu()) load.gpu = GpuIndex{request->gpu()};
    return Administer(load);
  }

  grpc::Status Evict(grpc::ServerContext*, const v1::EvictRequest* request,
                     v1::AdminResponse*) override {
    return Administer({.kind = AdminRequest::Kind::kEvict, .function = request->function()});
  }

  grpc::Status Pin(grpc::ServerContext*, const v1::PinRequest* request,
                   v1::AdminResponse*) override {
    return Administer(
        {.kind = request->is_pinned() ? AdminRequest::Kind::kPin : AdminRequest::Kind::kUnpin,
         .function = request->function()});
  }

  grpc::Status Checkpoint(grpc::ServerContext*, const v1::CheckpointRequest* request,
                          v1::AdminResponse*) override {
    return Administer({.kind = AdminRequest::Kind::kCheckpoint, .function = request->function()});
  }

  grpc::Status Configure(grpc::ServerContext*, const v1::ConfigureRequest* request,
                         v1::ConfigureResponse* response) override {
    const absl::StatusOr<std::vector<std::string>> changes =
        sources_.configure(ToConfigRequest(*request));
    if (!changes.ok()) return ToGrpc(changes.status());
    for (const std::string& line : *changes) response->add_changes(line);
    return grpc::Status::OK;
  }

  grpc::Status Explain(grpc::ServerContext*, const v1::ExplainRequest* request,
                       v1::Explanation* explanation) override {
    const absl::StatusOr<RequestTrace> trace = sources_.explain(request->request_id());
    if (trace.ok()) Fill(*trace, *explanation);
    return ToGrpc(trace.status());
  }

 private:
  grpc::Status Administer(const AdminRequest& request) {
    return ToGrpc(sources_.administer(request));
  }

  static grpc::Status ToGrpc(const absl::Status& status) {
    // Both number their codes like google.rpc.Code. Callers also get Unavailable if no daemon
    // answers.
    const int code = absl::IsUnavailable(status) ? static_cast<int>(grpc::StatusCode::ABORTED)
                                                 : status.raw_code();
    return {static_cast<grpc::StatusCode>(code), std::string(status.message())};
  }

  const AdminServer::Sources sources_;
  const TimePoint started_ = SteadyClock().Now();
};

class GrpcAdminServer final : public AdminServer {
 public:
  explicit GrpcAdminServer(Sources sources) : service_(std::move(sources)) {}
  ~GrpcAdminServer() override {
    // A stuck caller must not keep the daemon from ending.
    if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  }

  absl::Status Listen(const std::string& path) {
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    const auto admits = [peers = std::make_shared<AdminPeers>(path)](const PeerCredentials& peer) {
      return peers->Admit(peer);
    };
    TORPOR_ASSIGN_OR_RETURN(
        server_, UnixGrpcServer::Start(builder, path,
                                       {.mode = kSocketMode, .accepting = {.admits = admits}}));
    return absl::OkStatus();
  }

 private:
  AdminService service_;
  std::unique_ptr<UnixGrpcServer> server_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<AdminServer>> AdminServer::Start(const Config& config,
                                                                Sources sources) {
  grpc::EnableDefaultHealthCheckService(true);
  auto server = std::make_unique<GrpcAdminServer>(std::move(sources));
  TORPOR_RETURN_IF_ERROR(server->Listen(config.admin_socket));
  return server;
}

}  // namespace torpor::server

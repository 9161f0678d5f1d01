#include "server/node/node.h"

#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <future>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/descriptor_limit.h"
#include "base/mutex.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "server/controller/controller.h"
#include "server/controller/scheduler_setup.h"
#include "server/daemon/client_libraries.h"
#include "server/daemon/cuda_libraries.h"
#include "server/links/control_service.h"
#include "server/links/descriptor_server.h"
#include "server/links/node_service.h"
#include "server/node/address_search.h"
#include "server/node/event_log_writer.h"
#include "server/node/found_gpus.h"
#include "server/node/held_registrations.h"
#include "server/node/host_memory.h"
#include "server/node/session_records.h"
#include "server/node/thread_loop.h"
#include "server/node/tokens.h"
#include "server/processes/function_processes.h"
#include "server/settings/executor_settings.h"
#include "server/supervisor/supervisor.h"
#include "server/unix_socket/grpc_server.h"
#include "server/version/version.h"

namespace torpor::server {
namespace {

constexpr Duration kListTimeout = std::chrono::seconds(30);
// Grace period before executors and streams are ended by force.
constexpr Duration kStopGrace = std::chrono::seconds(5);
// For executors of an earlier torpord to let go of their sessions.
constexpr Duration kSettlePatience = std::chrono::seconds(5);

// The file that processes of an emulated node share, made by the emulator.
std::string EmulatorNodePath(const Config& config) {
  return GpuFolderOf(config) + "/emulator-node";
}

// NVIDIA's driver does not care.
std::vector<std::string> ExecutorEnvironment(const Config& config) {
  std::vector<std::string> environment;
  if (!config.emulator_topology.empty()) {
    environment.push_back(absl::StrCat("TORPOR_EMULATOR_TOPOLOGY=", config.emulator_topology));
  }
  // Set by users who let several daemons share an emulated node.
  const char* const shared_node = std::getenv("TORPOR_EMULATOR_NODE");
  if (shared_node == nullptr || *shared_node == 0) {
    environment.push_back(absl::StrCat("TORPOR_EMULATOR_NODE=", EmulatorNodePath(config)));
  }
  return environment;
}

std::string PoolSocketOf(const Config& config, GpuIndex gpu) {
  return absl::StrCat(GpuFolderOf(config), "/pool-", gpu.value, ".sock");
}

// All sockets that functions use lie beside the first: a container sees their folder anywhere.
std::string ClientFolderOf(const Config& config) {
  return std::filesystem::path(config.client_socket).parent_path();
}

std::string DescriptorSocketOf(const Config& config) {
  return ClientFolderOf(config) + "/descriptors.sock";
}

// The executors of a GPU have names of their own.
std::string ExecutorSocketOf(const Config& config, GpuIndex gpu, int place) {
  const std::string which = place == 0 ? "" : absl::StrCat(".", place);
  return absl::StrCat(ClientFolderOf(config), "/executor-", gpu.value, which, ".sock");
}

DeviceSettings WithSeccomp(const Config& config) {
  DeviceSettings device = config.device;
  if (device.seccomp == Seccomp::kAuto) {
    device.seccomp = config.is_emulated ? Seccomp::kEnforce : Seccomp::kLog;
  }
  return device;
}

ExecutorSettings ExecutorSettingsOf(const Config& config, GpuIndex gpu, std::uint64_t epoch,
                                    int place) {
  return {.gpu = gpu.value,
          .epoch = epoch,
          .place = place,
          .daemon_socket = config.run_dir + "/node.sock",
          .socket = ExecutorSocketOf(config, gpu, place),
          .socket_mode = config.socket_mode,
          .contexts = ExecutorsPerGpu(config) + (config.device.spare_executor ? 1 : 0),
          .pool_socket = HasPoolOwners(config) ? PoolSocketOf(config, gpu) : "",
          .descriptor_socket = DescriptorSocketOf(config),
          .module_dir = config.state_dir + "/modules",
          .link_profile_dir = config.state_dir + "/links",
          .compute_cache_dir = config.state_dir + "/compute_cache",
          .cuda_library_dir = config.cuda_library_dir,
          .addresses = AddressesOf(config),
          .device = WithSeccomp(config),
          .log = config.log};
}

ProcessCommand ExecutorCommand(const Config& config, const std::string& program, GpuIndex gpu,
                               std::uint64_t epoch, int place) {
  ProcessCommand command;
  command.program = program;
  command.arguments = {"--settings",
                       FormatExecutorSettings(ExecutorSettingsOf(config, gpu, epoch, place))};
  command.added_environment = ExecutorEnvironment(config);
  return command;
}

ProcessCommand PoolOwnerCommand(const Config& config, const std::string& program, GpuIndex gpu) {
  ProcessCommand command = ExecutorCommand(config, program, gpu, /*epoch=*/0, /*place=*/0);
  command.arguments.insert(command.arguments.begin(), "--own-pool");
  return command;
}

Bytes HostBudgetOf(const SizeOrShare& setting) {
  const std::optional<Bytes> available = AvailableHostMemory();
  if (!available && setting.percent > 0) {
    spdlog::warn("the system does not tell how much memory there is; set host_memory to a size");
    return HostBudget::kUnlimited;
  }
  if (available && setting.bytes > *available) {
    spdlog::warn("host_memory {} is more than the {} that there are", FormatBytes(setting.bytes),
                 FormatBytes(*available));
  }
  return setting.Of(available.value_or(0));
}

std::string SpillFolderOf(const Config& config) {
  return config.spill_dir.empty() ? config.state_dir + "/spilled" : config.spill_dir;
}

absl::Status CreateFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot create ", path, ": ", error.message()));
}

// Returns with what executors are started: those of another kind are not gone on with.
std::string ExecutorKindOf(const Config& config, const std::string& program,
                           const std::vector<GpuIndex>& gpus) {
  std::string kind = Version();
  // Two builds of a version differ in this.
  struct stat file {};
  if (stat(program.c_str(), &file) == 0) {
    absl::StrAppend(&kind, " ", file.st_size, " ", file.st_mtim.tv_sec, ".", file.st_mtim.tv_nsec);
  }
  for (const GpuIndex gpu : gpus) {
    const ProcessCommand command = ExecutorCommand(config, program, gpu, /*epoch=*/0, /*place=*/0);
    absl::StrAppend(&kind, "\n", absl::StrJoin(command.arguments, " "), " ",
                    absl::StrJoin(command.added_environment, " "));
  }
  return ToHex(Sha256(kind.data(), kind.size()));
}

std::map<pid_t, GpuIndex> ExecutorsOf(const std::map<GpuIndex, GpuProcesses>& processes) {
  std::map<pid_t, GpuIndex> executors;
  for (const auto& [gpu, of_gpu] : processes) {
    for (const auto& [place, process] : of_gpu.executors) executors.emplace(process.pid, gpu);
  }
  return executors;
}

// Returns how to ask the driver by a process of its own; an argument says what.
ProcessCommand InquiryCommand(const Config& config, const std::string& program) {
  ProcessCommand command;
  command.program = program;
  if (!config.cuda_library_dir.empty()) {
    command.arguments.push_back("--cuda-library-dir=" + config.cuda_library_dir);
  }
  command.added_environment = ExecutorEnvironment(config);
  return command;
}

absl::StatusOr<FoundGpus> FindGpus(const Config& config, const std::string& program) {
  ProcessCommand command = InquiryCommand(config, program);
  command.arguments.push_back("--list-devices");
  TORPOR_ASSIGN_OR_RETURN(const std::string output, RunForOutput(command, kListTimeout));
  return ReadDeviceList(output, config.gpus);
}

absl::Status CheckGpuCounts(const Config& config, std::size_t served) {
  for (const auto& [name, function] : config.functions) {
    if (static_cast<std::size_t>(function.gpus) <= served) continue;
    return absl::InvalidArgumentError(absl::StrCat("function ", name, " asks for ", function.gpus,
                                                   " GPUs, and this node serves ", served,
                                                   "; lower the function's gpus"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<UnixGrpcServer>> Serve(grpc::Service& service,
                                                      const std::string& path,
                                                      UnixGrpcServer::Options options) {
  grpc::ServerBuilder builder;
  builder.RegisterService(&service);
  return UnixGrpcServer::Start(builder, path, std::move(options));
}

// Functions may connect as often as they like: the last descriptors are torpord's own, of executors
// and administrators, and who connects and says nothing is cut off.
UnixGrpcServer::Options OptionsForFunctions(const Config& config) {
  constexpr std::chrono::seconds kIdleLimit{30};
  return {.mode = config.socket_mode,
          .idle_limit = kIdleLimit,
          .accepting = {.reserved_descriptors = ReservedDescriptors()}};
}

// Carries events of all threads to the controller's own.
class LiveNode final : public Node,
                       public RequestBroker,
                       public LinkListener,
                       public ProcessListener,
                       public ExecutorProcesses {
 public:
  explicit LiveNode(Config config)
      : config_(std::move(config)), control_service_(*this), node_service_(*this) {}

  ~LiveNode() override { Stop(); }

  absl::Status StartParts(Telemetry& telemetry, const std::string& executor_program,
                          std::map<std::string, UniqueFd> kept, Files& disk) {
    Controller::Options options;
    TORPOR_RETURN_IF_ERROR(CreateFolder(GpuFolderOf(config_)));
    TORPOR_ASSIGN_OR_RETURN(options.tokens, ReadTokens(config_));
    TORPOR_ASSIGN_OR_RETURN(session_records_,
                            SessionRecords::Open(config_.run_dir, std::move(kept), disk));
    options.session_log = session_records_->log();
    options.session_keeper = session_records_->keeper();
    ForgetDeadNode();
    TORPOR_ASSIGN_OR_RETURN(FoundGpus found, FindGpus(config_, executor_program));
    options.gpus = std::move(found.gpus);
    TORPOR_RETURN_IF_ERROR(CheckGpuCounts(config_, options.gpus.size()));
    TORPOR_RETURN_IF_ERROR(
        SettleAddresses(InquiryCommand(config_, executor_program), options.gpus, config_));
    if (config_.device.chunk_bytes == 0) {
      config_.device.chunk_bytes = ChunkBytesFor(config_.device.address_mode, found.least_memory);
    }
    gpu_count_ = options.gpus.size();
    options.host_budget = HostBudgetOf(config_.host_memory);
    options.config = config_;
    options.descriptor_socket = DescriptorSocketOf(config_);
    Supervisor::Options processes;
    processes.gpus = options.gpus;
    TORPOR_ASSIGN_OR_RETURN(
        processes.adopted,
        session_records_->TakeGpuProcesses(
            options.gpus, ExecutorKindOf(config_, executor_program, options.gpus)));
    ForgetDeadNode();
    const std::map<GpuIndex, GpuProcesses> adopted = processes.adopted;
    held_.Expect(ExecutorsOf(adopted));
    processes.executor_command = [this, executor_program](GpuIndex gpu, std::uint64_t epoch,
                                                          int place) {
      return ExecutorCommand(config_, executor_program, gpu, epoch, place);
    };
    options.executors_per_gpu = ExecutorsPerGpu(config_);
    processes.keeps_spares = config_.device.spare_executor;
    if (HasPoolOwners(config_)) {
      processes.pool_owner_command = [this, executor_program](GpuIndex gpu) {
        return PoolOwnerCommand(config_, executor_program, gpu);
      };
    }
    TORPOR_RETURN_IF_ERROR(CreateFolder(config_.state_dir + "/modules"));
    TORPOR_RETURN_IF_ERROR(CreateFolder(config_.state_dir + "/links"));
    TORPOR_RETURN_IF_ERROR(CreateFolder(config_.state_dir + "/compute_cache"));
    options.disk = &disk;
    options.spill_folder = SpillFolderOf(config_);
    if (config_.spill_limit > 0) TORPOR_RETURN_IF_ERROR(CreateFolder(options.spill_folder));
    if (!config_.scheduling.event_log.empty()) {
      TORPOR_ASSIGN_OR_RETURN(event_log_, EventLogWriter::Create(config_.scheduling.event_log,
                                                                 config_.scheduling.event_log_bytes,
                                                                 EventLogHeaderOf(config_)));
      options.record = [log = event_log_.get()](TimePoint when, const scheduler::Event& event,
                                                const scheduler::Actions& decided) {
        log->Record(when, event, decided);
      };
    }
    TORPOR_ASSIGN_OR_RETURN(const auto commands, CommandsOf(config_, ClientLibraryDirectory()));
    TORPOR_ASSIGN_OR_RETURN(
        processes_, FunctionProcesses::Start({.record_dir = config_.run_dir + "/processes",
                                              .sessions_go_on = options.session_log != nullptr},
                                             commands));
    options.lives = processes_.get();
    const std::string descriptor_socket = options.descriptor_socket;
    controller_ = std::make_unique<Controller>(options, loop_, repository_, *this, telemetry);
    TORPOR_ASSIGN_OR_RETURN(
        descriptor_server_,
        DescriptorServer::Start(descriptor_socket, config_.socket_mode, repository_,
                                [this](pid_t pid) { return IsExecutor(pid); }));
    TORPOR_ASSIGN_OR_RETURN(node_server_, Serve(node_service_, config_.run_dir + "/node.sock", {}));
    {
      MutexLock lock(&mutex_);  // until IsExecutor knows the processes
      supervisor_ = std::make_shared<Supervisor>(std::move(processes), *this);
    }
    TORPOR_RETURN_IF_ERROR(AwaitAdopted(adopted));
    OnLoop([this] {
      controller_->RestoreSessions();
      session_records_->Settle();
    });
    held_.Release();
    TORPOR_ASSIGN_OR_RETURN(control_server_, Serve(control_service_, config_.client_socket,
                                                   OptionsForFunctions(config_)));
    // They look for the sockets.
    processes_->SetCommands(commands);
    runs_processes_ = true;
    return absl::OkStatus();
  }

  RequestBroker& broker() override { return *this; }

  NodeSnapshot Snapshot() override {
    NodeSnapshot snapshot;
    if (!OnLoop([&] { snapshot = controller_->Snapshot(); })) snapshot.state = "draining";
    if (processes_) AddProcesses(processes_->Snapshot(), snapshot);
    return snapshot;
  }

  absl::Status Administer(const AdminRequest& request) override {
    auto outcome = std::make_shared<std::promise<absl::Status>>();
    const bool is_asked = OnLoop([&] {
      controller_->Administer(request,
                              [outcome](absl::Status s) { outcome->set_value(std::move(s)); });
    });
    if (!is_asked) return absl::UnavailableError("the node has stopped");
    return outcome->get_future().get();
  }

  absl::Status Reconfigure(const Config& config, bool is_trial) override {
    TORPOR_ASSIGN_OR_RETURN(const auto tokens, ReadTokens(config));
    TORPOR_RETURN_IF_ERROR(CheckGpuCounts(config, gpu_count_));
    TORPOR_ASSIGN_OR_RETURN(const auto commands, CommandsOf(config, ClientLibraryDirectory()));
    if (is_trial) return absl::OkStatus();
    if (!OnLoop([&] { controller_->Reconfigure(config, tokens); })) {
      return absl::UnavailableError("the node has stopped");
    }
    // Last: a new process shows a token that must be known.
    processes_->SetCommands(commands);
    return absl::OkStatus();
  }

  absl::StatusOr<RequestTrace> Explain(const std::string& request_id) override {
    absl::StatusOr<RequestTrace> trace = absl::UnavailableError("the node has stopped");
    OnLoop([&] { trace = controller_->Explain(request_id); });
    return trace;
  }

  void Post(std::function<void()> task) override {
    ReaderMutexLock lock(&stop_mutex_);
    if (!is_stopped_) loop_.Post(std::move(task));
  }

  bool Ready() override {
    bool is_ready = false;
    OnLoop([&] { is_ready = controller_->IsReady(); });
    return is_ready;
  }

  std::vector<std::string> ServingUpstreams(const std::string& function) override {
    std::vector<std::string> upstreams;
    OnLoop([&] { upstreams = controller_->ServingUpstreams(function); });
    return upstreams;
  }

  void Drain() override {
    auto idle = std::make_shared<std::promise<void>>();
    OnLoop([&] { controller_->Drain([idle] { idle->set_value(); }); });
    if (idle->get_future().wait_for(config_.drain_timeout) != std::future_status::ready) {
      spdlog::warn("requests still run after the drain timeout");
    }
  }

  void LeaveSessions() override {
    if (processes_) processes_->Leave();
    OnLoop([this] { has_left_executors_ = controller_->LeaveSessions(); });
  }
  void Stop() override;

  RequestId Acquire(const Demand& demand, OnGrant on_grant, OnLost on_lost) override {
    const RequestId request{next_request_.fetch_add(1)};
    ReaderMutexLock lock(&stop_mutex_);
    if (is_stopped_) {
      on_grant(absl::UnavailableError("the node has stopped"));
      return request;
    }
    loop_.Post(
        [this, request, demand, on_grant = std::move(on_grant), on_lost = std::move(on_lost)] {
          controller_->Acquire(request, demand, on_grant, on_lost);
        });
    return request;
  }

  void ConfirmLease(RequestId request, std::function<void()> done) override {
    loop_.Post(
        [this, request, done = std::move(done)] { controller_->ConfirmLease(request, done); });
  }

  void Save(RequestId request, std::function<void()> done) override {
    loop_.Post([this, request, done = std::move(done)] { controller_->Save(request, done); });
  }

  void AskAgain(RequestId request) override {
    loop_.Post([this, request] { controller_->AskAgain(request); });
  }

  void Release(RequestId request, scheduler::Ending ending) override {
    loop_.Post([this, request, ending] { controller_->Release(request, ending); });
  }

 private:
  void OnSessionMessage(const std::shared_ptr<SessionLink>& link, wire::ClientMessage message,
                        Done done) override {
    loop_.Post([this, link, message = std::move(message), done = std::move(done)] {
      controller_->OnSessionMessage(link, message);
      done();
    });
  }
  void OnSessionClosed(const std::shared_ptr<SessionLink>& link) override {
    loop_.Post([this, link] { controller_->OnSessionClosed(link); });
  }
  void OnExecutorMessage(const std::shared_ptr<ExecutorChannel>& link, v1::ExecutorMessage message,
                         Done done) override {
    if (message.has_register_()) {
      held_.NoteRegistered(static_cast<pid_t>(message.register_().pid()));
    }
    FromExecutor([this, link, message = std::move(message), done = std::move(done)] {
      controller_->OnExecutorMessage(link, message);
      done();
    });
  }
  void OnExecutorClosed(const std::shared_ptr<ExecutorChannel>& link) override {
    FromExecutor([this, link] { controller_->OnExecutorClosed(link); });
  }
  void OnExecutorStarting(ExecutorSeat seat, std::uint64_t epoch) override {
    loop_.Post([this, seat, epoch] { controller_->OnExecutorStarting(seat, epoch); });
  }
  void OnExecutorAdopted(ExecutorSeat seat, std::uint64_t epoch, pid_t process) override {
    loop_.Post(
        [this, seat, epoch, process] { controller_->OnExecutorAdopted(seat, epoch, process); });
  }
  void OnExecutorExited(ExecutorSeat seat, std::uint64_t epoch, pid_t process,
                        int signal) override {
    held_.NoteEnded(process);
    loop_.Post([this, seat, epoch, signal] { controller_->OnExecutorExited(seat, epoch, signal); });
  }
  void OnSpareStarting(GpuIndex gpu, std::uint64_t epoch) override {
    loop_.Post([this, gpu, epoch] { controller_->OnSpareStarting(gpu, epoch); });
  }
  void OnSpareAdopted(GpuIndex gpu, std::uint64_t epoch, pid_t process) override {
    loop_.Post([this, gpu, epoch, process] { controller_->OnSpareAdopted(gpu, epoch, process); });
  }
  void OnSpareExited(GpuIndex gpu, std::uint64_t epoch) override {
    loop_.Post([this, gpu, epoch] { controller_->OnSpareExited(gpu, epoch); });
  }

  void Kill(GpuIndex gpu, std::uint64_t epoch) override {
    if (const std::shared_ptr<Supervisor> supervisor = supervisor_now()) {
      supervisor->Kill(gpu, epoch);
    }
  }
  void Replace(GpuIndex gpu, std::uint64_t epoch) override {
    if (const std::shared_ptr<Supervisor> supervisor = supervisor_now()) {
      supervisor->Replace(gpu, epoch);
    }
  }
  void Want(ExecutorSeat seat) override {
    if (const std::shared_ptr<Supervisor> supervisor = supervisor_now()) supervisor->Want(seat);
  }
  void KeepSpare(GpuIndex gpu) override {
    if (const std::shared_ptr<Supervisor> supervisor = supervisor_now()) {
      supervisor->KeepSpare(gpu);
    }
  }
  bool IsExecutor(pid_t pid) {
    const std::shared_ptr<Supervisor> supervisor = supervisor_now();
    return supervisor && supervisor->IsExecutor(pid);
  }
  std::shared_ptr<Supervisor> supervisor_now() {
    MutexLock lock(&mutex_);
    return supervisor_;
  }

  // Hands the controller what an executor says, once sessions are restored.
  void FromExecutor(TaskLoop::Task task) {
    if (held_.is_over()) return loop_.Post(std::move(task));
    held_.Take([this, task = std::move(task)] { loop_.Post(task); });
  }

  // Removes what an emulated node of processes that live no more has left.
  void ForgetDeadNode() {
    if (!session_records_->HasGpuProcesses()) unlink(EmulatorNodePath(config_).c_str());
  }

  // Waits until no executor of an earlier torpord has a session any more.
  absl::Status AwaitAdopted(const std::map<GpuIndex, GpuProcesses>& adopted) {
    for (const auto& [pid, gpu] : held_.Await(kSettlePatience)) {
      spdlog::error(
          "GPU {}: executor {} of the earlier torpord does not let go of its sessions; it is "
          "restarted",
          gpu.value, pid);
      for (const auto& [place, process] : adopted.at(gpu).executors) {
        if (process.pid == pid) TORPOR_RETURN_IF_ERROR(EndGpuProcess(process));
      }
    }
    return absl::OkStatus();
  }

  // False, and nothing is done, once the node has stopped.
  bool OnLoop(const std::function<void()>& work) {
    ReaderMutexLock lock(&stop_mutex_);
    if (is_stopped_ || !controller_) return false;
    std::promise<void> done;
    loop_.Post([&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
    return true;
  }

  Config config_;  // constant once the parts have started; functions are the controller's then
  std::size_t gpu_count_ = 0;
  Repository repository_;
  std::unique_ptr<EventLogWriter> event_log_;
  std::unique_ptr<SessionRecords> session_records_;
  std::unique_ptr<FunctionProcesses> processes_;  // the controller's too
  bool runs_processes_ = false;                   // and ends them
  HeldRegistrations held_;
  std::atomic<bool> has_left_executors_{false};
  // Declared before the loop, whose last tasks still use the controller.
  std::unique_ptr<Controller> controller_;
  ThreadLoop loop_;
  ControlService control_service_;
  NodeService node_service_;
  std::unique_ptr<DescriptorServer> descriptor_server_;
  std::unique_ptr<UnixGrpcServer> node_server_;
  std::unique_ptr<UnixGrpcServer> control_server_;
  std::atomic<std::uint64_t> next_request_{1};

  Mutex mutex_;
  std::shared_ptr<Supervisor> supervisor_ ABSL_GUARDED_BY(mutex_);

  Mutex stop_mutex_;  // held while the loop must keep running
  bool is_stopped_ ABSL_GUARDED_BY(stop_mutex_) = false;
};

void LiveNode::Stop() {
  // First: processes may use the GPU at their end, and their sessions are still open.
  if (runs_processes_) processes_->Stop();
  if (!OnLoop([this] { controller_->Shutdown(); })) {
    MutexLock lock(&stop_mutex_);
    if (is_stopped_) return;
  }
  // First parts that act by themselves, then parts that only answer.
  if (const std::shared_ptr<Supervisor> supervisor = supervisor_now()) {
    if (has_left_executors_) {
      supervisor->Leave();
    } else {
      supervisor->Stop(kStopGrace);
    }
  }
  const auto deadline = std::chrono::system_clock::now() + std::chrono::seconds(1);
  if (control_server_) control_server_->Shutdown(deadline);
  if (node_server_) node_server_->Shutdown(deadline);
  descriptor_server_.reset();
  {
    MutexLock lock(&stop_mutex_);
    is_stopped_ = true;
  }
  loop_.Stop();
  unlink(config_.client_socket.c_str());
  unlink((config_.run_dir + "/node.sock").c_str());
  if (!has_left_executors_) unlink(EmulatorNodePath(config_).c_str());
}

}  // namespace

absl::StatusOr<std::unique_ptr<Node>> Node::Start(const Config& config, Telemetry& telemetry,
                                                  const Programs& programs,
                                                  std::map<std::string, UniqueFd> kept,
                                                  Files& disk) {
  const std::string executor =
      programs.executor.empty() ? ProgramDirectory() + "/torpor-executor" : programs.executor;
  auto node = std::make_unique<LiveNode>(config);
  TORPOR_RETURN_IF_ERROR(node->StartParts(telemetry, executor, std::move(kept), disk));
  return node;
}

absl::StatusOr<std::unique_ptr<Node>> Node::Start(const Config& config, Telemetry& telemetry) {
  return Start(config, telemetry, Programs{});
}

}  // namespace torpor::server

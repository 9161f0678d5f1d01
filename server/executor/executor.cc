#include "server/executor/executor.h"

#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "server/executor/execution_service.h"
#include "server/executor/executor_confinement.h"
#include "server/executor/gpu/address_reservation.h"
#include "server/executor/gpu/cpu_affinity.h"
#include "server/executor/gpu/device.h"
#include "server/executor/gpu/huge_pages.h"
#include "server/executor/gpu/kernel_output.h"
#include "server/executor/image/arena_memory.h"
#include "server/executor/image/link_profile.h"
#include "server/executor/image/mapped_backing.h"
#include "server/executor/image/pool_client.h"
#include "server/executor/image/pool_size.h"
#include "server/executor/library/math_libraries.h"
#include "server/executor/node_link.h"
#include "server/executor/ring_server.h"
#include "server/executor/served_domain.h"
#include "server/executor/session/consolidation.h"
#include "server/executor/session/pinning_ahead.h"
#include "server/executor/session_memory/node_windows.h"
#include "server/executor/session_memory/peer_pools.h"
#include "server/executor/session_memory/peer_server.h"

namespace torpor::executor {
namespace {

using server::ExecutorSettings;

// Time for replies in flight when the executor ends.
constexpr auto kShutdownGrace = std::chrono::milliseconds(200);

// Time for a session's work to end, at the end of the lease or of the session. An honest client
// gives back a lease only after all work is done, so only faulty clients use up the time.
constexpr Duration kLeaseEndPatience = std::chrono::seconds(25);

// For the owner of the GPU's memory to listen: a driver starts up in a second, many at once in
// more.
constexpr Duration kOwnerPatience = std::chrono::seconds(30);

std::string PeerSocket(const ExecutorSettings& settings) { return settings.socket + ".peers"; }

// How to swap in over the measured links.
struct SwapPlan {
  SwapOptions options;
  double link_rate = 0;      // bytes a second; 0: not measured
  std::vector<int> sources;  // other GPUs, the fastest first
};

// Whether the group size is chosen by measuring the GPU's link.
bool MeasuresLink(const ExecutorSettings& settings) {
  return settings.device.swap_group_bytes == 0;
}

// Chooses the group size: as configured, or the smallest at which the measured link is fast. Falls
// back to the default size if measuring fails.
SwapPlan PlanGroups(const ExecutorSettings& settings, const Device& device) {
  const server::DeviceSettings& device_settings = settings.device;
  SwapPlan plan{{.pinned = device_settings.swap_pinned,
                 .pipeline = device_settings.swap_pipeline,
                 .wait = device_settings.swap_wait},
                0,
                {}};
  if (!MeasuresLink(settings)) {
    plan.options.group_bytes = device_settings.swap_group_bytes;
    return plan;
  }
  if (plan.options.pipeline != SwapPipeline::kGroup) return plan;
  const absl::StatusOr<BandwidthCurve> curve = ProfileLink(device, settings.link_profile_dir);
  if (!curve.ok()) {
    spdlog::warn("GPU {}: groups of {} KiB, since its link was not measured: {}", settings.gpu,
                 plan.options.group_bytes / kKiB, curve.status().ToString());
    return plan;
  }
  plan.link_rate = memory::PeakRate(*curve);
  plan.options.group_bytes = memory::FindElbow(*curve).value_or(plan.options.group_bytes);
  spdlog::info("GPU {}: {:.1f} GB/s from the host, {:.0f}% of that in groups of {} KiB",
               settings.gpu, plan.link_rate / 1e9, 100 * memory::kElbowShare,
               plan.options.group_bytes / kKiB);
  return plan;
}

// Returns the GPUs to copy images from, fastest first.
std::vector<int> RankSources(const ExecutorSettings& settings, const Device& device) {
  std::vector<int> peers = device.FastPeers();
  if (!MeasuresLink(settings) || peers.size() < 2) return peers;
  absl::StatusOr<std::vector<int>> ranked = RankPeers(device, peers, settings.link_profile_dir);
  if (ranked.ok()) {
    spdlog::info("GPU {}: fastest from other GPUs, in this order: {}", settings.gpu,
                 absl::StrJoin(*ranked, ", "));
    return *std::move(ranked);
  }
  spdlog::warn("GPU {}: other GPUs are ranked as the driver ranks them, not by measured rates: {}",
               settings.gpu, ranked.status().ToString());
  return peers;
}

SwapPlan PlanSwaps(const ExecutorSettings& settings, const Device& device) {
  SwapPlan plan = PlanGroups(settings, device);
  plan.sources = RankSources(settings, device);
  return plan;
}

// Call before any thread of ours is started.
void BindToNode(const ExecutorSettings& settings, const Device& device) {
  if (settings.device.numa_binding == server::NumaBinding::kOff) return;
  const int cpus = RunNearDevice(device.properties().pci_bus_id);
  if (cpus > 0) spdlog::info("GPU {}: on the {} CPUs of its NUMA node", settings.gpu, cpus);
}

bool WantsHugePages(const ExecutorSettings& settings) {
  if (settings.device.huge_pages == server::HugePages::kOff) return false;
  const bool has_some = GivesSharedHugePages();
  spdlog::info("GPU {}: images in {} pages, by {}", settings.gpu, has_some ? "huge" : "small",
               kSharedHugePages);
  return has_some;
}

// Describes the executor and the GPU to torpord.
v1::ExecutorMessage Registration(const ExecutorSettings& settings, const Device& device,
                                 const PhysicalPool& pool, const PoolClient* pool_owner,
                                 const ImageMemory& gpu_memory, const SwapPlan& swap,
                                 const std::vector<std::string>& not_confined) {
  v1::ExecutorMessage message;
  v1::ExecutorMessage::Register& registration = *message.mutable_register_();
  registration.set_gpu(settings.gpu);
  registration.set_pid(getpid());
  registration.set_epoch(settings.epoch);
  registration.set_pool_bytes(gpu_memory.capacity());
  registration.set_chunk_bytes(pool.chunk_bytes());
  registration.set_group_bytes(swap.options.group_bytes);
  registration.set_link_bytes_per_second(swap.link_rate);
  registration.set_place(static_cast<std::uint32_t>(settings.place));
  if (pool_owner != nullptr) registration.set_pool_owner_pid(pool_owner->process());
  registration.mutable_not_confined()->Assign(not_confined.begin(), not_confined.end());
  registration.set_socket_path(settings.socket);
  registration.set_peer_socket_path(PeerSocket(settings));
  // Memory shared with another GPU must lie at the client's own addresses.
  if (settings.device.address_mode == AddressMode::kMap && pool.can_export()) {
    for (const int peer : device.ReachablePeers()) registration.add_peers(peer);
  }
  if (pool.can_export()) {
    for (const int peer : swap.sources) registration.add_image_sources(peer);
  }
  const DeviceProperties& properties = device.properties();
  v1::DeviceDescription& description = *registration.mutable_device();
  description.set_name(properties.name);
  description.set_uuid(properties.uuid.data(), properties.uuid.size());
  description.set_total_bytes(properties.total_bytes);
  description.mutable_attributes()->Assign(properties.attributes.begin(),
                                           properties.attributes.end());
  description.set_driver_version(properties.driver_version);
  description.set_pci_bus_id(properties.pci_bus_id);
  return message;
}

// Creates and keeps what every function shares, so that the driver takes the memory for that before
// the pool takes the rest.
void WarmUp(MathLibraries& libraries) {
  if (const cublasHandle_t blas = libraries.cublas.Take(); blas != nullptr) {
    libraries.cublas.Return(blas);
  }
  if (const cudnnHandle_t dnn = libraries.cudnn.Take(); dnn != nullptr) {
    libraries.cudnn.Return(dnn);
  }
}

// Connects to the process that owns the GPU's memory; null if this one is to own the memory. Call
// before the context is created: the owner measures what an executor takes.
absl::StatusOr<std::unique_ptr<PoolClient>> ConnectToOwner(const ExecutorSettings& settings) {
  if (settings.pool_socket.empty()) return nullptr;
  return PoolClient::Connect(settings.pool_socket, kOwnerPatience);
}

// Lets go of an owner whose memory the driver lets no other process use.
void CheckOwner(const ExecutorSettings& settings, const Device& device,
                std::unique_ptr<PoolClient>& owner) {
  if (owner == nullptr) return;
  const absl::Status usable = owner->Try(device);
  if (usable.ok()) return;
  spdlog::warn(
      "GPU {}: no spare executor, since an executor must own the GPU's memory here ({}); set "
      "spare_executor: false",
      settings.gpu, usable.ToString());
  owner.reset();
}

// Without the owner no image finds room: a successor gets the GPU, with another owner. torpord must
// learn of a death, and of no failure of what the GPU does.
void EndWithOwner(PoolClient& owner, int gpu) {
  owner.WhenLost([gpu] {
    spdlog::error("GPU {}: the owner of the memory does not answer", gpu);
    _exit(static_cast<int>(ExitStatus::kFailure));
  });
}

// Opens the pool: the owner's or, without one, as large as configured, or all memory that the
// warmed-up driver leaves.
absl::StatusOr<std::unique_ptr<PhysicalPool>> OpenPool(const ExecutorSettings& settings,
                                                       const Device& device,
                                                       const PoolClient* owner) {
  if (owner != nullptr) return PhysicalPool::Import(device, *owner);
  TORPOR_ASSIGN_OR_RETURN(const Bytes free, device.FreeMemory());
  const PoolNeeds needs{.total = device.properties().total_bytes,
                        .free = free,
                        .reserve = settings.device.driver_reserve,
                        .asked = settings.device.pool_bytes};
  return MakePool(device, needs, settings.device.chunk_bytes);
}

// Reserves the node's addresses for `address_mode: map`; null otherwise. A context has most
// addresses free when new.
absl::StatusOr<std::unique_ptr<AddressReservation>> ReserveAddresses(
    const ExecutorSettings& settings, const Device& device) {
  if (settings.device.address_mode != AddressMode::kMap) return nullptr;
  auto reserved = AddressReservation::Make(device, settings.addresses.device_base,
                                           settings.addresses.device_bytes);
  if (reserved.ok()) return reserved;
  return absl::Status(
      reserved.status().code(),
      absl::StrFormat("GPU %d: the driver refuses the node's %d GiB of addresses at %#x, which it "
                      "gave to another process before: %s; restart torpord, which then looks for "
                      "others, or set address_mode: translate, which needs none",
                      settings.gpu, settings.addresses.device_bytes / kGiB,
                      settings.addresses.device_base, std::string(reserved.status().message())));
}

// Opens the memory for images according to `address_mode`.
absl::StatusOr<std::unique_ptr<ImageMemory>> OpenMemory(const ExecutorSettings& settings,
                                                        const Device& device, PhysicalPool& pool) {
  if (settings.device.address_mode == AddressMode::kMap) {
    return std::make_unique<MappedMemory>(
        device, pool,
        AddressRange{settings.addresses.device_base, settings.addresses.device_bytes});
  }
  TORPOR_ASSIGN_OR_RETURN(std::unique_ptr<ArenaMemory> arena,
                          ArenaMemory::Create(device, pool, settings.device.partition_sizes));
  arena->StartMapping();
  return arena;
}

// Returns the functions that `load` finds in `directory`; logs a missing library and returns an
// empty table.
template <typename Functions>
Functions Find(absl::StatusOr<Functions> (*load)(const std::string&), const char* library,
               const std::string& directory) {
  absl::StatusOr<Functions> functions = load(directory);
  if (functions.ok()) return *functions;
  spdlog::warn("no {} for functions: {}", library, functions.status().ToString());
  return {};
}

// Lets the driver keep what it compiles across restarts, unless the operator has chosen a folder.
// Call before the driver is loaded.
void KeepCompiledCode(const ExecutorSettings& settings) {
  constexpr const char* kMaxBytes = "4294967296";  // the driver's own limit, 1 GiB, is too small
  if (settings.compute_cache_dir.empty()) return;
  setenv("CUDA_CACHE_PATH", settings.compute_cache_dir.c_str(), /*overwrite=*/0);
  setenv("CUDA_CACHE_MAXSIZE", kMaxBytes, /*overwrite=*/0);
}

// Returns null if the executor serves gRPC only.
absl::StatusOr<std::unique_ptr<RingServer>> ServeRings(const ExecutorSettings& settings,
                                                       const Device& device,
                                                       SessionRegistry& registry) {
  if (settings.device.transport == server::Transport::kGrpc) return nullptr;
  return RingServer::Start(settings.socket + wire::kRingSocketSuffix, settings.socket_mode, device,
                           registry);
}

// Breaks the cycle between the loop, which listens to sessions, and the sessions, which need a
// listener when made.
class SessionRelay final : public SessionListener {
 public:
  void Connect(SessionListener& listener) { listener_ = &listener; }
  void OnContextLost(SessionId session, const cuda_api::CallStatus& error) override {
    listener_->OnContextLost(session, error);
  }
  void OnArrival(SessionId session, const ArrivedBytes& bytes, Duration duration) override {
    listener_->OnArrival(session, bytes, duration);
  }

 private:
  SessionListener* listener_ = nullptr;
};

}  // namespace

absl::Status RunExecutor(const server::ExecutorSettings& settings) {
  KeepCompiledCode(settings);
  const std::vector<std::string> not_confined = server::Confine(ConfinementOf(settings));
  TORPOR_ASSIGN_OR_RETURN(const CudaDriver driver, LoadCudaDriver(settings.cuda_library_dir));
  TORPOR_ASSIGN_OR_RETURN(std::unique_ptr<PoolClient> pool_owner, ConnectToOwner(settings));
  TORPOR_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, Device::Open(driver, settings.gpu));
  BindToNode(settings, *device);
  TORPOR_ASSIGN_OR_RETURN(const std::unique_ptr<AddressReservation> addresses,
                          ReserveAddresses(settings, *device));
  TORPOR_ASSIGN_OR_RETURN(const std::unique_ptr<NodeWindows> windows,
                          NodeWindows::Reserve(settings.addresses, settings.device.chunk_bytes,
                                               WantsHugePages(settings)));
  TORPOR_ASSIGN_OR_RETURN(
      const std::unique_ptr<TenantMemories> tenants,
      TenantMemories::Reserve(*device, settings.addresses.device_bytes, WantsHugePages(settings)));
  device->RaiseLimits();
  const SwapPlan swap = PlanSwaps(settings, *device);  // while the pool does not have the memory
  TORPOR_ASSIGN_OR_RETURN(const std::unique_ptr<BlockHasher> hasher,
                          KernelBlockHasher::Open(*device));
  const ModuleStore store(settings.module_dir);
  ModuleLibrary modules(*device, store);
  const std::string& folder = settings.cuda_library_dir;
  const auto make_room = [&device = *device] { return device.discarded().DestroyAll() > 0; };
  MathLibraries libraries{.cublas = CublasPool(Find(LoadCublas, "cuBLAS", folder), make_room),
                          .cublaslt = CublasLtLibrary(Find(LoadCublasLt, "cuBLASLt", folder)),
                          .cudnn = CudnnPool(Find(LoadCudnn, "cuDNN", folder), make_room)};
  WarmUp(libraries);
  CheckOwner(settings, *device, pool_owner);
  if (pool_owner != nullptr) EndWithOwner(*pool_owner, settings.gpu);
  TORPOR_ASSIGN_OR_RETURN(const std::unique_ptr<PhysicalPool> pool,
                          OpenPool(settings, *device, pool_owner.get()));
  TORPOR_ASSIGN_OR_RETURN(const std::unique_ptr<ImageMemory> gpu_memory,
                          OpenMemory(settings, *device, *pool));
  KernelOutput output;
  TORPOR_RETURN_IF_ERROR(output.TakeOver(driver));
  MemoryDirectory directory;
  TORPOR_ASSIGN_OR_RETURN(const std::unique_ptr<PeerPools> peer_pools, PeerPools::Start(*device));
  SessionRegistry registry;
  SessionRelay relay;
  NodeLink link(settings.daemon_socket);
  const SteadyClock clock;
  ServedDomain domain([&](const std::string& name) {
    spdlog::info("GPU {}: serves {}", settings.gpu, name);
    pool->SetDomain(NumberOf(name));
    if (IsIsolated(name)) peer_pools->UnmapAfterUse();
    link.NoteDomain(name);
  });
  const OperationEnvironment environment{
      {*device, *gpu_memory, *hasher, modules, libraries, output, relay},
      registry,
      directory,
      *windows,
      *tenants,
      *peer_pools,
      domain,
      pool_owner.get(),
      settings.descriptor_socket,
      kLeaseEndPatience,
      swap.options};
  Consolidation consolidation(registry, *gpu_memory);
  PinningAhead pinning_ahead(registry);
  std::vector<IdleTask*> idle_tasks = {&device->discarded(), &consolidation};
  if (settings.device.swap_pinned_ahead) idle_tasks.insert(idle_tasks.begin(), &pinning_ahead);
  ExecutorLoop loop(environment, idle_tasks, link, clock);
  relay.Connect(loop);

  ExecutionService service(*device, registry,
                           settings.device.transport != server::Transport::kRings);
  TORPOR_ASSIGN_OR_RETURN(const std::unique_ptr<server::UnixGrpcServer> server,
                          Serve(service, settings.socket, settings.socket_mode));
  TORPOR_ASSIGN_OR_RETURN(const std::unique_ptr<RingServer> rings,
                          ServeRings(settings, *device, registry));
  TORPOR_ASSIGN_OR_RETURN(const std::unique_ptr<PeerServer> peer_server,
                          PeerServer::Start(PeerSocket(settings), *device, *pool, directory));
  link.Start(
      Registration(settings, *device, *pool, pool_owner.get(), *gpu_memory, swap, not_confined),
      loop);
  spdlog::info("GPU {} ({}): {} MiB for images in chunks of {} KiB, functions at {}", settings.gpu,
               device->properties().name, gpu_memory->capacity() / kMiB, pool->chunk_bytes() / kKiB,
               settings.socket);
  const ExitStatus end = loop.Run();
  link.Finish();
  // Streams end now; a thread blocked on the GPU must not delay the exit.
  if (rings != nullptr) rings->Shutdown(kShutdownGrace);
  server->Shutdown(std::chrono::system_clock::now() + kShutdownGrace);
  // Not exit(): a driver with a lost context may take seconds to shut down, and exit() would
  // destroy objects in use by threads that wait for the driver.
  _exit(static_cast<int>(end));
}

}  // namespace torpor::executor

#include "emulator/driver/process/driver.h"

#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

namespace torpor::emulator {
namespace {

// Bound on waiting for running kernels at exit.
constexpr Duration kExitPatience = std::chrono::seconds(1);

NodeResult<std::unique_ptr<NodeFile>> JoinNode(const std::string& description) {
  const char* const path = std::getenv("TORPOR_EMULATOR_NODE");
  return path == nullptr || *path == 0 ? NodeFile::Private() : NodeFile::Join(path, description);
}

}  // namespace

Driver& Driver::Get() {
  static Driver* const driver = new Driver;
  return *driver;
}

CUresult Driver::Initialize() {
  std::lock_guard lock(mutex_);
  if (state() != CUDA_ERROR_NOT_INITIALIZED) return state();
  if (!devices_.empty()) return CUDA_ERROR_NOT_INITIALIZED;  // a forked child
  if (const auto started = Start(); !started.ok()) {
    if (!started.failure().message.empty()) Say(started.failure().message);
    return started.failure().code;
  }
  std::atexit([] { Get().AtExit(); });
  pthread_atfork(nullptr, nullptr, [] { Get().LeaveToParent(); });
  state_.store(CUDA_SUCCESS, std::memory_order_release);
  return CUDA_SUCCESS;
}

DriverResult<void> Driver::Start() {
  auto described = NodeFromEnvironment();
  if (!described.ok()) {
    return Failure<CUresult>{CUDA_ERROR_INVALID_VALUE, described.failure().message};
  }
  if (described->gpus.empty()) return Failure<CUresult>{CUDA_ERROR_NO_DEVICE, ""};
  auto node = JoinNode(described->description);
  if (!node.ok()) return Failure<CUresult>{CUDA_ERROR_INVALID_VALUE, node.failure().message};
  node_ = std::move(*node);
  topology_ = std::move(described->topology);
  kernel_times_ = std::make_unique<KernelTimes>(topology_);
  for (const GpuSpec& spec : described->gpus) {
    devices_.push_back(std::make_unique<DriverDevice>(static_cast<CUdevice>(devices_.size()), spec,
                                                      topology_, *node_, space_));
    primary_contexts_.push_back(std::make_unique<PrimaryContext>(*devices_.back(), *this));
  }
  return {};
}

void Driver::LeaveToParent() {
  state_.store(CUDA_ERROR_NOT_INITIALIZED, std::memory_order_release);
  node_->LeaveToParent();
}

void Driver::AtExit() {
  // A forked child has none of the threads; exit() on a stream's own thread would wait for itself.
  if (state() != CUDA_SUCCESS || Stream::OnWorkerThread()) return;
  state_.store(CUDA_ERROR_DEINITIALIZED, std::memory_order_release);
  std::set<std::shared_ptr<Context>> contexts;
  {
    std::lock_guard lock(mutex_);
    contexts = alive_;
  }
  const TimePoint deadline = std::chrono::steady_clock::now() + kExitPatience;
  for (const auto& context : contexts) context->Abandon(deadline);
}

DriverDevice* Driver::device(CUdevice index) {
  if (index < 0 || static_cast<std::size_t>(index) >= devices_.size()) return nullptr;
  return devices_[static_cast<std::size_t>(index)].get();
}

DriverDevice* Driver::DeviceAt(unsigned place) {
  const auto found = std::find_if(devices_.begin(), devices_.end(), [place](const auto& device) {
    return device->spec().place == place;
  });
  return found == devices_.end() ? nullptr : found->get();
}

CUcontext Driver::AddContext(const std::shared_ptr<Context>& context) {
  {
    std::lock_guard lock(mutex_);
    alive_.insert(context);
  }
  CUcontext handle = contexts_.Create(context);
  context->set_handle(handle);
  return handle;
}

std::shared_ptr<Context> Driver::RemoveContext(CUcontext handle) {
  auto context = contexts_.Share(handle);
  if (context == nullptr) return nullptr;
  context->WaitAll();
  contexts_.Destroy(handle);
  modules_.DestroyIf(
      [&](const ModuleObject& module) { return module.context().lock() == context; });
  FreeMemoryOf(handle);
  std::lock_guard lock(mutex_);
  alive_.erase(context);
  return context;
}

void Driver::FreeMemoryOf(CUcontext context) {
  for (const Region& region : space_.OwnedBy(context)) {
    switch (region.kind) {
      case RegionKind::kDevice:
      case RegionKind::kManaged:
        device(region.device)->FreeMemory(region.begin, region.kind);
        break;
      case RegionKind::kHost:
        (void)space_.Free(region.begin, region.kind);
        break;
      case RegionKind::kRegistered:
        space_.Unregister(region.begin);
        break;
      case RegionKind::kMapped:
        break;  // is nobody's
    }
  }
}

}  // namespace torpor::emulator

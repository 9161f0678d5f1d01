#include "emulator/driver/driver.h"

#include <pthread.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>

namespace torpor::emulator {
namespace {

// How long the end of a process waits for kernels that are running.
constexpr Duration kExitPatience = std::chrono::seconds(1);

}  // namespace

Driver& Driver::Get() {
  static Driver* const driver = new Driver;
  return *driver;
}

CUresult Driver::Initialize() {
  std::lock_guard lock(mutex_);
  if (state() != CUDA_ERROR_NOT_INITIALIZED) return state();
  if (!devices_.empty()) return CUDA_ERROR_NOT_INITIALIZED;  // a forked child
  const auto topology = TopologyFromEnvironment();
  if (!topology.ok()) {
    Say(topology.failure().message);
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (topology->gpus.empty()) return CUDA_ERROR_NO_DEVICE;
  std::map<std::string, std::shared_ptr<PcieLink>> switches;
  for (const GpuSpec& spec : topology->gpus) {
    auto link = std::make_shared<PcieLink>(spec.pcie_gbps * 1e9);
    if (!spec.pcie_switch.empty()) {
      link = switches.try_emplace(spec.pcie_switch, std::move(link)).first->second;
    }
    const auto index = static_cast<CUdevice>(devices_.size());
    devices_.push_back(std::make_unique<Device>(index, spec, std::move(link), space_));
  }
  std::atexit([] { Get().AtExit(); });
  pthread_atfork(nullptr, nullptr,
                 [] { Get().state_.store(CUDA_ERROR_NOT_INITIALIZED, std::memory_order_release); });
  state_.store(CUDA_SUCCESS, std::memory_order_release);
  return CUDA_SUCCESS;
}

void Driver::AtExit() {
  // A forked child has none of the threads; exit() from a stream's own thread would wait for
  // itself.
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

Device* Driver::device(CUdevice index) {
  if (index < 0 || static_cast<std::size_t>(index) >= devices_.size()) return nullptr;
  return devices_[static_cast<std::size_t>(index)].get();
}

Device* Driver::DeviceAt(unsigned place) {
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
  modules_.DestroyIf([&](const Module& module) { return module.context().lock() == context; });
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

std::vector<CurrentContext>& ContextStack() {
  thread_local std::vector<CurrentContext> stack;
  return stack;
}

}  // namespace torpor::emulator

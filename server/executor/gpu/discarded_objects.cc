#include "server/executor/gpu/discarded_objects.h"

#include <type_traits>

namespace torpor::executor {
namespace {

constexpr Duration kStepTime = std::chrono::milliseconds(1);
// So few that the operations of a busy executor are not held up to speak of.
constexpr std::size_t kMostOverdue = 4;

template <typename Handle>
Handle As(std::uint64_t handle) {
  if constexpr (std::is_pointer_v<Handle>) {
    return reinterpret_cast<Handle>(handle);
  } else {
    return handle;
  }
}

template <typename Handle>
std::uint64_t NumberOf(Handle handle) {
  if constexpr (std::is_pointer_v<Handle>) {
    return reinterpret_cast<std::uint64_t>(handle);
  } else {
    return handle;
  }
}

// Destroys by the entry point `kCall` of the driver's table. Nobody is left to hear of a failure,
// and a lost context shows in other calls.
template <typename Handle, auto kCall>
void DestroyBy(const CudaDriver& driver, std::uint64_t handle) {
  (driver.*kCall)(As<Handle>(handle));
}

}  // namespace

void DiscardedObjects::Add(CUevent event) {
  Add(event, DestroyBy<CUevent, &CudaDriver::EventDestroy>, 0);
}
void DiscardedObjects::Add(CUstream stream) {
  Add(stream, DestroyBy<CUstream, &CudaDriver::StreamDestroy>, 0);
}
void DiscardedObjects::Add(CUgraphExec graph) {
  Add(graph, DestroyBy<CUgraphExec, &CudaDriver::GraphExecDestroy>, 0);
}
void DiscardedObjects::Add(CUmodule module, Bytes bytes) {
  Add(module, DestroyBy<CUmodule, &CudaDriver::ModuleUnload>, bytes);
}
void DiscardedObjects::Add(CUarray array, Bytes bytes) {
  Add(array, DestroyBy<CUarray, &CudaDriver::ArrayDestroy>, bytes);
}
void DiscardedObjects::Add(CUmipmappedArray array, Bytes bytes) {
  Add(array, DestroyBy<CUmipmappedArray, &CudaDriver::MipmappedArrayDestroy>, bytes);
}
void DiscardedObjects::AddTexture(CUtexObject texture) {
  Add(texture, DestroyBy<CUtexObject, &CudaDriver::TexObjectDestroy>, 0);
}
void DiscardedObjects::AddSurface(CUsurfObject surface) {
  Add(surface, DestroyBy<CUsurfObject, &CudaDriver::SurfObjectDestroy>, 0);
}

template <typename Handle>
void DiscardedObjects::Add(Handle handle, Object::Destroy destroy, Bytes bytes) {
  if (handle == Handle{}) return;
  const TimePoint now = clock_.Now();
  {
    MutexLock lock(&mutex_);
    objects_.push_back({destroy, NumberOf(handle), bytes, now});
    bytes_ += bytes;
  }
  while (DestroyOldestIf([this](const Object&) {
    return objects_.size() > bounds_.count || bytes_ > bounds_.bytes;
  })) {
  }
}

template <typename Due>
bool DiscardedObjects::DestroyOldestIf(const Due& is_due) {
  Object oldest;
  {
    MutexLock lock(&mutex_);
    if (objects_.empty() || !is_due(objects_.front())) return false;
    oldest = objects_.front();
    objects_.pop_front();
    bytes_ -= oldest.bytes;
  }
  oldest.destroy(driver_, oldest.handle);
  return true;
}

std::size_t DiscardedObjects::size() const {
  MutexLock lock(&mutex_);
  return objects_.size();
}

std::size_t DiscardedObjects::DestroyAll() {
  std::size_t destroyed = 0;
  while (DestroyOldestIf([](const Object&) { return true; })) ++destroyed;
  return destroyed;
}

std::size_t DiscardedObjects::DestroyOverdue() {
  const TimePoint due = clock_.Now() - bounds_.age;
  const auto is_due = [due](const Object& object) { return object.since < due; };
  std::size_t destroyed = 0;
  while (destroyed < kMostOverdue && DestroyOldestIf(is_due)) ++destroyed;
  return destroyed;
}

// Requests that follow one another closely find the driver free.
Duration DiscardedObjects::quiet_time() const { return std::chrono::milliseconds(100); }

// A client that connects anew discards objects without an operation of torpord.
std::optional<Duration> DiscardedObjects::look_again_after() const {
  return std::chrono::seconds(1);
}

absl::StatusOr<bool> DiscardedObjects::Step(CUstream, const std::atomic<bool>& is_wanted) {
  const TimePoint end = clock_.Now() + kStepTime;
  const auto any = [](const Object&) { return true; };
  while (!is_wanted.load(std::memory_order_relaxed) && clock_.Now() < end) {
    if (!DestroyOldestIf(any)) return false;
  }
  return true;
}

}  // namespace torpor::executor

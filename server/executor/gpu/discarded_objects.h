#pragma once

#include <cuda.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/units.h"
#include "server/executor/gpu/cuda_driver.h"
#include "server/executor/gpu/idle_task.h"

namespace torpor::executor {

// Objects of the driver that have no user any more. Destroying an object may wait for the whole
// context, or hold up the driver's calls of other threads, so objects are kept until the executor
// is idle, within bounds. Thread-safe; call with the context current.
class DiscardedObjects final : public IdleTask {
 public:
  // Beyond count and bytes the oldest objects go at once; beyond the age, after the next operation
  // of the executor.
  struct Bounds {
    std::size_t count = 1u << 16;
    Bytes bytes = 64 * kMiB;  // of device memory, as far as known
    Duration age{std::chrono::seconds(30)};
  };

  // `driver` and `clock` must outlive this.
  DiscardedObjects(const CudaDriver& driver, const Clock& clock, const Bounds& bounds)
      : driver_(driver), clock_(clock), bounds_(bounds) {}
  DiscardedObjects(const DiscardedObjects&) = delete;
  DiscardedObjects& operator=(const DiscardedObjects&) = delete;

  // Take over an object. No later work uses the object. Null is ignored.
  void Add(CUevent event);
  void Add(CUstream stream);
  void Add(CUgraphExec graph);
  // `bytes` of device memory, roughly.
  void Add(CUmodule module, Bytes bytes);
  void Add(CUarray array, Bytes bytes);
  void Add(CUmipmappedArray array, Bytes bytes);
  void AddTexture(CUtexObject texture);
  void AddSurface(CUsurfObject surface);

  std::size_t size() const;
  // Destroy objects in the order of arrival; return how many: all, or a few of those beyond the
  // age.
  std::size_t DestroyAll();
  std::size_t DestroyOverdue();

  // IdleTask.
  const char* name() const override { return "destroying objects without users"; }
  Duration quiet_time() const override;
  std::optional<Duration> look_again_after() const override;
  absl::StatusOr<bool> Step(CUstream stream, const std::atomic<bool>& is_wanted) override;

 private:
  struct Object {
    using Destroy = void (*)(const CudaDriver& driver, std::uint64_t handle);
    Destroy destroy = nullptr;
    std::uint64_t handle = 0;
    Bytes bytes = 0;
    TimePoint since;
  };

  template <typename Handle>
  void Add(Handle handle, Object::Destroy destroy, Bytes bytes);
  // Destroys the oldest object if there is one and `is_due`, called under the lock, says so.
  template <typename Due>
  bool DestroyOldestIf(const Due& is_due);

  const CudaDriver& driver_;
  const Clock& clock_;
  const Bounds bounds_;
  mutable Mutex mutex_;                                 // not held during calls of the driver
  std::deque<Object> objects_ ABSL_GUARDED_BY(mutex_);  // the oldest first
  Bytes bytes_ ABSL_GUARDED_BY(mutex_) = 0;             // of objects_
};

}  // namespace torpor::executor

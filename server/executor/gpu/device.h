#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/units.h"
#include "server/executor/gpu/cuda_driver.h"
#include "server/executor/gpu/discarded_objects.h"
#include "server/executor/gpu/queue_room.h"

namespace torpor::executor {

// A device's description of itself.
struct DeviceProperties {
  std::string name;
  std::array<std::uint8_t, 16> uuid{};
  Bytes total_bytes = 0;
  std::vector<std::int32_t> attributes;  // by CUdevice_attribute, 0 if unknown
  std::int32_t driver_version = 0;
  std::string pci_bus_id;
};

// Returns the number of the driver's devices; 0 if the driver reports CUDA_ERROR_NO_DEVICE.
absl::StatusOr<int> CountDevices(const CudaDriver& driver);
// Reads the properties of device `index` without making a context. Call CountDevices first.
absl::StatusOr<DeviceProperties> DescribeDevice(const CudaDriver& driver, int index);

// One GPU and the process's context on the GPU, held as long as the process uses the GPU.
// Thread-safe after Open.
class Device {
 public:
  // Opens device `index`, retains the primary context until destruction, and makes the context
  // current on the calling thread. Copies the driver's table. NotFound if the driver has no device
  // `index`.
  static absl::StatusOr<std::unique_ptr<Device>> Open(const CudaDriver& driver, int index);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const CudaDriver& driver() const { return driver_; }
  const DeviceProperties& properties() const { return properties_; }
  // Returns an attribute's value as read at Open; 0 if unknown to the driver.
  std::int32_t attribute(CUdevice_attribute which) const;
  unsigned compute_capability() const;  // 10 * major + minor

  // Location of the device's physical chunks, for cuMemCreate and cuMemSetAccess.
  CUmemLocation location() const { return {CU_MEM_LOCATION_TYPE_DEVICE, handle_}; }

  // Returns the other GPUs of the machine, by index, whose exported memory kernels of this GPU can
  // reach.
  std::vector<int> ReachablePeers() const;
  // Returns the peers over NVLinks, in the driver's ranking.
  std::vector<int> FastPeers() const;

  // Makes the context current; every thread must call MakeCurrent before any call of the driver.
  absl::Status MakeCurrent() const;

  // Raises the limits of the context that the driver fixes when a kernel first uses what they
  // bound, since all functions share the context: printf's buffer and malloc's heap. Call before
  // any kernel; logs what the driver refuses.
  void RaiseLimits();
  // Returns what a limit was before RaiseLimits; 0 for limits that the driver does not have.
  std::size_t default_limit(CUlimit limit) const { return default_limits_[limit]; }

  // Returns the memory that no process has allocated.
  absl::StatusOr<Bytes> FreeMemory() const;

  // The context's objects without users.
  DiscardedObjects& discarded() const { return *discarded_; }
  // Calls `create`, which returns a CUresult. If the driver has no memory for that, destroys the
  // discarded objects and calls `create` again.
  template <typename Create>
  CUresult MakingRoom(const Create& create) const {
    const CUresult result = create();
    if (result != CUDA_ERROR_OUT_OF_MEMORY || discarded_->DestroyAll() == 0) return result;
    return create();
  }

  // The room for work in the context's queues.
  QueueRoom& queue_room() const { return *queue_room_; }

  // Creates a non-blocking stream.
  absl::StatusOr<CUstream> CreateStream() const;

  // Converts a driver's result; see ToStatus.
  absl::Status Status(CUresult result, std::string_view what) const;

 private:
  int PeerAttribute(CUdevice_P2PAttribute which, int peer) const;

  Device(const CudaDriver& driver, CUdevice handle, CUcontext context, DeviceProperties properties);

  const CudaDriver driver_;
  const CUdevice handle_;
  const CUcontext context_;
  const DeviceProperties properties_;
  std::array<std::size_t, CU_LIMIT_MAX> default_limits_{};
  const SteadyClock clock_;
  const std::unique_ptr<DiscardedObjects> discarded_;
  const std::unique_ptr<QueueRoom> queue_room_ = std::make_unique<QueueRoom>();
};

}  // namespace torpor::executor

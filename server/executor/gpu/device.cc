#include "server/executor/gpu/device.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/executor/gpu/cuda_status.h"

namespace torpor::executor {
namespace {

// Bounds of RaiseLimits: more than programs are known to ask for, and at most so small a part of a
// small GPU each.
constexpr Bytes kPrintfBytes = 16 * kMiB;
constexpr Bytes kHeapBytes = 512 * kMiB;
constexpr Bytes kLimitShare = 128;

// The part of a GPU that discarded objects may hold: a few hundredths of what the pool leaves to
// the driver.
constexpr Bytes kDiscardedShare = 512;

std::vector<std::int32_t> ReadAttributes(const CudaDriver& driver, CUdevice device) {
  std::vector<std::int32_t> attributes(CU_DEVICE_ATTRIBUTE_MAX, 0);
  for (int i = 1; i < CU_DEVICE_ATTRIBUTE_MAX; ++i) {
    int value = 0;
    // A driver older than our headers does not know the newest attributes.
    if (driver.DeviceGetAttribute(&value, static_cast<CUdevice_attribute>(i), device) ==
        CUDA_SUCCESS) {
      attributes[static_cast<std::size_t>(i)] = value;
    }
  }
  return attributes;
}

}  // namespace

absl::StatusOr<int> CountDevices(const CudaDriver& driver) {
  const CUresult initialized = driver.Init(0);
  if (initialized == CUDA_ERROR_NO_DEVICE) return 0;
  TORPOR_RETURN_IF_ERROR(ToStatus(driver, initialized, "cuInit"));
  int count = 0;
  TORPOR_RETURN_IF_ERROR(ToStatus(driver, driver.DeviceGetCount(&count), "cuDeviceGetCount"));
  return count;
}

absl::StatusOr<DeviceProperties> DescribeDevice(const CudaDriver& driver, int index) {
  DeviceProperties properties;
  CUdevice device = 0;
  TORPOR_RETURN_IF_ERROR(ToStatus(driver, driver.DeviceGet(&device, index), "cuDeviceGet"));
  char name[256] = {};
  TORPOR_RETURN_IF_ERROR(
      ToStatus(driver, driver.DeviceGetName(name, sizeof name, device), "cuDeviceGetName"));
  properties.name = name;
  CUuuid uuid{};
  TORPOR_RETURN_IF_ERROR(ToStatus(driver, driver.DeviceGetUuid(&uuid, device), "cuDeviceGetUuid"));
  std::memcpy(properties.uuid.data(), uuid.bytes, sizeof uuid.bytes);
  std::size_t total = 0;
  TORPOR_RETURN_IF_ERROR(
      ToStatus(driver, driver.DeviceTotalMem(&total, device), "cuDeviceTotalMem"));
  properties.total_bytes = total;
  char bus_id[32] = {};
  TORPOR_RETURN_IF_ERROR(ToStatus(driver, driver.DeviceGetPciBusId(bus_id, sizeof bus_id, device),
                                  "cuDeviceGetPCIBusId"));
  properties.pci_bus_id = bus_id;
  int version = 0;
  TORPOR_RETURN_IF_ERROR(ToStatus(driver, driver.DriverGetVersion(&version), "cuDriverGetVersion"));
  properties.driver_version = version;
  properties.attributes = ReadAttributes(driver, device);
  return properties;
}

absl::StatusOr<std::unique_ptr<Device>> Device::Open(const CudaDriver& driver, int index) {
  TORPOR_ASSIGN_OR_RETURN(const int count, CountDevices(driver));
  if (index < 0 || index >= count) {
    return absl::NotFoundError(
        absl::StrCat("there is no GPU ", index, ": the driver counts ", count));
  }
  TORPOR_ASSIGN_OR_RETURN(DeviceProperties properties, DescribeDevice(driver, index));
  CUdevice handle = 0;
  TORPOR_RETURN_IF_ERROR(ToStatus(driver, driver.DeviceGet(&handle, index), "cuDeviceGet"));
  // By default a driver waits by spinning, and a node has more waiting threads than cores.
  TORPOR_RETURN_IF_ERROR(
      ToStatus(driver, driver.DevicePrimaryCtxSetFlags(handle, CU_CTX_SCHED_BLOCKING_SYNC),
               "cuDevicePrimaryCtxSetFlags"));
  CUcontext context = nullptr;
  TORPOR_RETURN_IF_ERROR(ToStatus(driver, driver.DevicePrimaryCtxRetain(&context, handle),
                                  "cuDevicePrimaryCtxRetain"));
  std::unique_ptr<Device> device(new Device(driver, handle, context, std::move(properties)));
  TORPOR_RETURN_IF_ERROR(device->MakeCurrent());
  for (int i = 0; i < CU_LIMIT_MAX; ++i) {
    // A driver does not have every limit that its header names.
    driver.CtxGetLimit(&device->default_limits_[static_cast<std::size_t>(i)],
                       static_cast<CUlimit>(i));
  }
  return device;
}

Device::Device(const CudaDriver& driver, CUdevice handle, CUcontext context,
               DeviceProperties properties)
    : driver_(driver),
      handle_(handle),
      context_(context),
      properties_(std::move(properties)),
      discarded_(std::make_unique<DiscardedObjects>(
          driver_, clock_,
          DiscardedObjects::Bounds{.bytes = properties_.total_bytes / kDiscardedShare})) {}

Device::~Device() { driver_.DevicePrimaryCtxRelease(handle_); }

std::int32_t Device::attribute(CUdevice_attribute which) const {
  return properties_.attributes[static_cast<std::size_t>(which)];
}

unsigned Device::compute_capability() const {
  return static_cast<unsigned>(10 * attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                               attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
}

std::vector<int> Device::ReachablePeers() const {
  std::vector<int> peers;
  int count = 0;
  const bool can_share =
      attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) != 0;
  if (!can_share || driver_.DeviceGetCount(&count) != CUDA_SUCCESS) return peers;
  for (int index = 0; index < count; ++index) {
    CUdevice peer = 0;
    int can_access = 0;
    if (driver_.DeviceGet(&peer, index) != CUDA_SUCCESS || peer == handle_) continue;
    const CUresult asked = driver_.DeviceCanAccessPeer(&can_access, handle_, peer);
    if (asked == CUDA_SUCCESS && can_access != 0) peers.push_back(index);
  }
  return peers;
}

std::vector<int> Device::FastPeers() const {
  std::vector<int> peers = ReachablePeers();
  // Over PCIe there are no atomics of another GPU's memory.
  std::erase_if(peers, [this](int peer) {
    return PeerAttribute(CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED, peer) == 0;
  });
  // Rank 0 is the best.
  std::ranges::stable_sort(peers, {}, [this](int peer) {
    return PeerAttribute(CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK, peer);
  });
  return peers;
}

int Device::PeerAttribute(CUdevice_P2PAttribute which, int peer) const {
  CUdevice handle = 0;
  int value = 0;
  if (driver_.DeviceGet(&handle, peer) == CUDA_SUCCESS) {
    driver_.DeviceGetP2PAttribute(&value, which, handle_, handle);
  }
  return value;
}

absl::Status Device::MakeCurrent() const {
  return Status(driver_.CtxSetCurrent(context_), "cuCtxSetCurrent");
}

void Device::RaiseLimits() {
  const Bytes share = properties_.total_bytes / kLimitShare;
  const std::pair<CUlimit, Bytes> limits[] = {
      {CU_LIMIT_PRINTF_FIFO_SIZE, std::min(share, kPrintfBytes)},
      {CU_LIMIT_MALLOC_HEAP_SIZE, std::min(share, kHeapBytes)}};
  for (const auto& [limit, bytes] : limits) {
    if (bytes <= default_limit(limit)) continue;
    const absl::Status raised = Status(driver_.CtxSetLimit(limit, bytes), "cuCtxSetLimit");
    if (!raised.ok()) spdlog::warn("limit {} stays as it is: {}", +limit, raised.ToString());
  }
}

absl::StatusOr<Bytes> Device::FreeMemory() const {
  std::size_t free = 0;
  std::size_t total = 0;
  TORPOR_RETURN_IF_ERROR(Status(driver_.MemGetInfo(&free, &total), "cuMemGetInfo"));
  return free;
}

absl::StatusOr<CUstream> Device::CreateStream() const {
  CUstream stream = nullptr;
  TORPOR_RETURN_IF_ERROR(
      Status(driver_.StreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0),
             "cuStreamCreateWithPriority"));
  return stream;
}

absl::Status Device::Status(CUresult result, std::string_view what) const {
  return ToStatus(driver_, result, what);
}

}  // namespace torpor::executor

#include "emulator/driver/device.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "emulator/driver/context.h"
#include "emulator/driver/driver.h"

namespace torpor::emulator {
namespace {

constexpr Bytes kSharedPerBlock = 48 * kKiB;
constexpr Bytes kSharedPerBlockOptIn = 99 * kKiB;
constexpr int kPciBusBase = 1;

int AsInt(Bytes value) { return static_cast<int>(value); }

}  // namespace

TimePoint Link::Reserve(Bytes size, TimePoint now) {
  if (!paced()) return now;
  const Duration duration(
      static_cast<std::int64_t>(static_cast<double>(size) * 1e9 / bytes_per_second_));
  std::lock_guard lock(mutex_);
  free_at_ = std::max(free_at_, now) + duration;
  return free_at_;
}

Device::Device(CUdevice index, GpuSpec spec, std::shared_ptr<PcieLink> link, AddressSpace& space)
    : index_(index),
      spec_(std::move(spec)),
      link_(std::move(link)),
      space_(space),
      budget_(spec_.memory) {}

DeviceTraits Device::traits() const {
  return {.multiprocessors = spec_.multiprocessors,
          .compute_capability = spec_.compute_capability,
          .shared_bytes_per_block = kSharedPerBlockOptIn};
}

CUuuid Device::uuid() const {
  // Version 4 in form; the same for the same place in the same topology.
  static constexpr unsigned char kTemplate[16] = {0x70, 0x6f, 0x72, 0x74, 0x6f, 0x72, 0x40, 0x00,
                                                  0x80, 0x65, 0x6d, 0x75, 0x00, 0x00, 0x00, 0x00};
  CUuuid uuid;
  std::memcpy(uuid.bytes, kTemplate, sizeof(kTemplate));
  uuid.bytes[15] = static_cast<char>(index_);
  return uuid;
}

std::string Device::pci_bus_id() const {
  char text[16];
  std::snprintf(text, sizeof(text), "0000:%02x:00.0", (index_ + kPciBusBase) & 0xff);
  return text;
}

std::optional<int> Device::Attribute(CUdevice_attribute attribute) const {
  if (attribute <= 0 || attribute >= CU_DEVICE_ATTRIBUTE_MAX) return std::nullopt;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      return 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
      return 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
      return 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
      return 64;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
      return 0x7fffffff;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
      return 65535;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
      return 65535;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      return AsInt(kSharedPerBlock);
    case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
      return 65536;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      return 32;
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH:
      return 0x7fffffff;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
      return 65536;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      return 1'000'000;  // kHz
    case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
      return 512;
    case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
      return 1;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return static_cast<int>(spec_.multiprocessors);
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
      return 1;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE:
      return CU_COMPUTEMODE_DEFAULT;
    case CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT:
      return 512;
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
      return 1;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
      return index_ + kPciBusBase;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      return 1'000'000;  // kHz
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
      return 128;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      return AsInt(32 * kMiB);
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      return 1536;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
      return 2;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
      return 1;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT:
      return 32;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return static_cast<int>(spec_.compute_capability / 10);
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return static_cast<int>(spec_.compute_capability % 10);
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
      return 1;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED:
      return 1;
    case CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED:
      return 1;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
      return AsInt(100 * kKiB);
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
      return 65536;
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
      return 1;
    case CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED:
      return 1;
    case CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO:
      return 2;
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
      return 1;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED:
      return 1;
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
      return 1;
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1:
      return 1;
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1:
      return 1;
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1:
      return 1;
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
      return 1;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      return AsInt(kSharedPerBlockOptIn);
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
      return 1;
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
      return 1;
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
      return 1;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
      return 24;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
      return 1024;
    case CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED:
      return 1;
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
      return 1;
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR:
      return 1;
    case CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT:
      return 1;
    case CU_DEVICE_ATTRIBUTE_NUMA_ID:
      return -1;
    default:
      return 0;  // texture sizes, MIG, graphics, fabric: not there
  }
}

DriverResult<std::uint64_t> Device::AllocateMemory(Bytes size, RegionKind kind, unsigned flags) {
  if (size == 0) return Failure<CUresult>{CUDA_ERROR_INVALID_VALUE, "size 0"};
  if (size > spec_.memory || !budget_.Take(RoundUp(size, kAllocationUnit))) {
    return Failure<CUresult>{CUDA_ERROR_OUT_OF_MEMORY, "the device's memory is used up"};
  }
  auto address = space_.Allocate(size, kind, index_, flags);
  if (!address.ok()) budget_.Return(RoundUp(size, kAllocationUnit));
  return address;
}

CUresult Device::FreeMemory(std::uint64_t address, RegionKind kind) {
  const auto region = space_.Free(address, kind);
  if (!region.ok()) return region.failure().code;
  budget_.Return(RoundUp(region->size, kAllocationUnit));
  return CUDA_SUCCESS;
}

bool Device::IsAccessible(std::uint64_t address, Bytes size) const {
  return space_.Covers(address, size, Access::kRead);
}

ExecResult<std::uint64_t> Device::Allocate(Bytes size) {
  const auto address = AllocateMemory(size, RegionKind::kDevice, 0);
  if (!address.ok()) return Failure<ExecError>{ExecError::kOutOfMemory, address.failure().message};
  return *address;
}

void Device::Free(std::uint64_t address) { FreeMemory(address, RegionKind::kDevice); }

std::shared_ptr<Context> Device::RetainPrimary(CUcontext& handle) {
  std::lock_guard lock(primary_mutex_);
  Driver& driver = Driver::Get();
  if (primary_ == nullptr) {
    primary_ = driver.AddContext(std::make_shared<Context>(*this, primary_flags_, true));
  }
  ++primary_references_;
  handle = primary_;
  return driver.contexts().Share(primary_);
}

CUresult Device::ReleasePrimary() {
  {
    std::lock_guard lock(primary_mutex_);
    if (primary_references_ == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (--primary_references_ != 0) return CUDA_SUCCESS;
  }
  ResetPrimary();
  return CUDA_SUCCESS;
}

void Device::ResetPrimary() {
  CUcontext handle = nullptr;
  {
    std::lock_guard lock(primary_mutex_);
    handle = std::exchange(primary_, nullptr);
    primary_references_ = 0;
  }
  if (handle != nullptr) Driver::Get().RemoveContext(handle);
}

CUresult Device::SetPrimaryFlags(unsigned flags) {
  std::lock_guard lock(primary_mutex_);
  primary_flags_ = flags;
  if (Context* context = Driver::Get().contexts().Get(primary_)) context->set_flags(flags);
  return CUDA_SUCCESS;
}

void Device::PrimaryState(unsigned& flags, int& active) const {
  std::lock_guard lock(primary_mutex_);
  flags = primary_flags_;
  active = primary_ != nullptr ? 1 : 0;
}

}  // namespace torpor::emulator

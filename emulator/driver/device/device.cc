#include "emulator/driver/device/device.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "emulator/driver/device/device_limits.h"

namespace torpor::emulator {
namespace {

constexpr int AsInt(std::uint64_t value) { return static_cast<int>(value); }

// Attributes with the same value on all emulated devices.
struct FixedAttribute {
  CUdevice_attribute attribute;
  int value;
};
constexpr FixedAttribute kFixedAttributes[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, AsInt(kMaxThreadsPerBlock)},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, AsInt(kMaxBlock.x)},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, AsInt(kMaxBlock.y)},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, AsInt(kMaxBlock.z)},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, AsInt(kMaxGrid.x)},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, AsInt(kMaxGrid.y)},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, AsInt(kMaxGrid.z)},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, AsInt(kSharedPerBlock)},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 0x7fffffff},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, kRegistersPerMultiprocessor},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1'000'000},  // kHz
    {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, AsInt(kTextureAlignment)},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH, kMaxTextureWidth},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH, kMaxTextureWidth},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT, kMaxTextureHeight},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH, kMaxVolumeEdge},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT, kMaxVolumeEdge},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH, kMaxVolumeEdge},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH, kMaxLayerEdge},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT, kMaxLayerEdge},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS, kMaxLayers},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH, kMaxLayerEdge},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS, kMaxLayers},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH, kMaxLayerEdge},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT, kMaxLayerEdge},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH, kMaxLayerEdge},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH, kMaxLayerEdge},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS, kMaxCubeLayers},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH, kMaxLinearTexels},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH, kMaxTextureWidth},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT, kMaxTextureHeight},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH, kMaxLinearTexels},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH, kMaxLayerEdge},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH, kMaxLayerEdge},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT, kMaxLayerEdge},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH, kMaxLayerEdge},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH, kMaxTextureWidth},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT, kMaxTextureHeight},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH, kMaxVolumeEdge},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT, kMaxVolumeEdge},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH, kMaxVolumeEdge},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH, kMaxLayerEdge},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS, kMaxLayers},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH, kMaxLayerEdge},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT, kMaxLayerEdge},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS, kMaxLayers},
    {CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH, kMaxLayerEdge},
    {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, CU_COMPUTEMODE_DEFAULT},
    {CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1'000'000},  // kHz
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 128},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, AsInt(32 * kMiB)},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, kMaxThreadsPerMultiprocessor},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, AsInt(kTexturePitchAlignment)},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, AsInt(kSharedPerMultiprocessor)},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, kRegistersPerMultiprocessor},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 2},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1, 1},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, AsInt(kSharedPerBlockOptIn)},
    {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, kMaxBlocksPerMultiprocessor},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, AsInt(kSharedReservedPerBlock)},
    {CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, 1},
    {CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT, 1},
    {CU_DEVICE_ATTRIBUTE_NUMA_ID, -1},
};

}  // namespace

DriverDevice::DriverDevice(CUdevice index, GpuSpec spec, const Topology& topology, NodeFile& node,
                           AddressSpace& space)
    : index_(index),
      spec_(std::move(spec)),
      pci_address_(PciAddressOf(topology, spec_.place)),
      link_signature_(LinkSignature(topology, spec_.place)),
      space_(space),
      budget_(node, spec_.place, spec_.memory, topology.faults.memory_ends_at),
      call_costs_(topology),
      strict_(topology.strict) {}

DeviceTraits DriverDevice::traits() const {
  return {.multiprocessors = spec_.multiprocessors,
          .compute_capability = spec_.compute_capability,
          .shared_bytes_per_block = kSharedPerBlockOptIn};
}

CUuuid DriverDevice::uuid() const {
  // Version 4 in form. The same in every process for the same place in the topology. A different
  // link gives a different UUID, since measurements of a GPU's link are kept under the GPU's name.
  static constexpr unsigned char kTemplate[16] = {0x70, 0x6f, 0x72, 0x74, 0x6f, 0x72, 0x40, 0x00,
                                                  0x80, 0x65, 0x6d, 0x75, 0x00, 0x00, 0x00, 0x00};
  CUuuid uuid;
  std::memcpy(uuid.bytes, kTemplate, sizeof(kTemplate));
  std::memcpy(uuid.bytes + 11, &link_signature_, sizeof(link_signature_));
  uuid.bytes[15] = static_cast<char>(spec_.place);
  return uuid;
}

std::optional<int> DriverDevice::Attribute(CUdevice_attribute attribute) const {
  if (attribute <= 0 || attribute >= CU_DEVICE_ATTRIBUTE_MAX) return std::nullopt;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return static_cast<int>(spec_.multiprocessors);
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
      return static_cast<int>(pci_address_.bus);
    case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
      return static_cast<int>(pci_address_.domain);
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return static_cast<int>(spec_.compute_capability / 10);
    case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH:
      return spec_.compute_capability >= kFirstClusterCapability ? 1 : 0;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return static_cast<int>(spec_.compute_capability % 10);
    default:
      break;
  }
  const auto* found = std::find_if(
      std::begin(kFixedAttributes), std::end(kFixedAttributes),
      [attribute](const FixedAttribute& entry) { return entry.attribute == attribute; });
  // The rest is not there: MIG, graphics, fabric.
  return found == std::end(kFixedAttributes) ? 0 : found->value;
}

// Takes the budget before the memory, and gives it back if the memory is not available. Memory
// without an owner holds modules' variables, which begin as zeros.
DriverResult<std::uint64_t> DriverDevice::AllocateMemory(Bytes size, RegionKind kind,
                                                         CUcontext owner, unsigned flags) {
  if (size == 0) return Failure<CUresult>{CUDA_ERROR_INVALID_VALUE, "size 0"};
  if (size > spec_.memory || !budget_.Take(RoundUp(size, kAllocationUnit))) {
    return Failure<CUresult>{CUDA_ERROR_OUT_OF_MEMORY, "the device's memory is used up"};
  }
  auto address = space_.Allocate(size, kind, index_, owner, flags);
  if (!address.ok()) {
    budget_.Return(RoundUp(size, kAllocationUnit));
  } else if (NewContents* contents = new_contents(); contents != nullptr && owner != nullptr) {
    contents->Fill(reinterpret_cast<void*>(*address), size);
  }
  return address;
}

CUresult DriverDevice::FreeMemory(std::uint64_t address, RegionKind kind) {
  const auto region = space_.Free(address, kind);
  if (!region.ok()) return region.failure().code;
  budget_.Return(RoundUp(region->size, kAllocationUnit));
  return CUDA_SUCCESS;
}

// Any known memory will do: registered host memory is accessible to all devices.
bool DriverDevice::IsAccessible(std::uint64_t address, Bytes size) const {
  return space_.Covers(address, size, Access::kRead);
}

ExecResult<std::uint64_t> DriverDevice::Allocate(Bytes size) {
  const auto address = AllocateMemory(size, RegionKind::kDevice, nullptr);
  if (!address.ok()) return Failure<ExecError>{ExecError::kOutOfMemory, address.failure().message};
  return *address;
}

void DriverDevice::Free(std::uint64_t address) { FreeMemory(address, RegionKind::kDevice); }

}  // namespace torpor::emulator

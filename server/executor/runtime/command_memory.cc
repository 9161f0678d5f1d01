#include "server/executor/runtime/command_memory.h"

namespace torpor::executor {

using cuda_api::Access;

CUdeviceptr CommandMemory::Device(std::uint64_t address, Bytes bytes, Access access) const {
  if (const CUdeviceptr found = memory_.Use(address, bytes, access); found != 0) return found;
  memory_.image().touches().UseAll();
  const CUdeviceptr variable = modules_.Translate(address);
  return modules_.OwnsVariable(variable, bytes) ? variable : 0;
}

const std::uint8_t* CommandMemory::Payload(wire::Payload kind, std::uint64_t offset, Bytes bytes,
                                           std::span<const std::uint8_t> data) const {
  switch (kind) {
    case wire::Payload::kInline:
      return data.size() == bytes ? data.data() : nullptr;
    case wire::Payload::kWindow:
      return memory_.window().Payload(offset, bytes);
    case wire::Payload::kArena:
      return memory_.Arena(offset, bytes);
  }
  return nullptr;
}

std::optional<CommandMemory::Side> CommandMemory::LinearSide(wire::MemorySide side,
                                                             std::uint64_t address, Bytes extent,
                                                             Access access) const {
  switch (side) {
    case wire::MemorySide::kDevice:
      if (const CUdeviceptr device = Device(address, extent, access); device != 0) {
        return Side{CU_MEMORYTYPE_DEVICE, device, nullptr};
      }
      break;
    case wire::MemorySide::kArena:
      if (void* const host = memory_.ArenaAt(address, extent); host != nullptr) {
        return Side{CU_MEMORYTYPE_HOST, 0, host};
      }
      break;
    case wire::MemorySide::kArray:
      break;
  }
  return std::nullopt;
}

}  // namespace torpor::executor

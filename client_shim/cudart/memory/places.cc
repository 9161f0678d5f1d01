#include "client_shim/cudart/memory/places.h"

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/memory/memory_pools.h"
#include "client_shim/cudart/module/symbol_addresses.h"

namespace torpor::shim {
namespace {

// Whether an address outside all allocations is in a session's range; stores the device.
bool IsWild(std::uint64_t address, int& device) {
  for (device = 0; ClientCore* const core = Core().OfDevice(device); ++device) {
    if (!core->IsOpen()) continue;
    if (address - core->session().device_base < core->session().device_bytes) return true;
  }
  return false;
}

}  // namespace

Place PlaceOf(const void* pointer) {
  const std::uint64_t address = Address(pointer);
  ClientCore::Allocation allocation;
  if (Core().FindAllocation(address, allocation)) {
    std::uint64_t room = 0;
    if (FindInPools(allocation, address, room))
      return {Side::kDevice, room, room == 0, allocation.device};
    const Side side = allocation.on_device ? Side::kDevice : Side::kArena;
    return {side, allocation.begin + allocation.bytes - address, false, allocation.device};
  }
  const wire::HelloReply& session = Core().session();
  if (int device = 0; IsWild(address, device)) return {Side::kDevice, 0, true, device};
  if (address - session.host_base < session.host_bytes) return {Side::kArena, 0, true, 0};
  if (const std::uint64_t room = RoomInSymbol(address); room > 0)
    return {Side::kDevice, room, false, DeviceInUse()};
  return {};
}

std::uint64_t ArenaOffset(const void* pointer) {
  return Address(pointer) - Core().session().host_base;
}

}  // namespace torpor::shim

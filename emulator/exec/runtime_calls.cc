#include "emulator/exec/runtime_calls.h"

#include <time.h>
#include <x86intrin.h>

#include <cstring>
#include <string>

#include "emulator/exec/arena.h"
#include "emulator/exec/block_runner.h"
#include "emulator/exec/device_print.h"
#include "emulator/exec/rounded_math.h"

namespace torpor::emulator {
namespace {

Warp& WarpOf(WarpContext* context) { return *static_cast<Warp*>(context); }

std::uint32_t FirstLane(std::uint32_t mask) {
  return mask == 0 ? 0 : static_cast<std::uint32_t>(__builtin_ctz(mask));
}

std::string Hex(std::uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof(text), "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

bool Within(std::uint64_t address, std::uint32_t bytes, std::uint64_t begin, std::uint64_t size) {
  return address - begin < size && size - (address - begin) >= bytes;
}

void CheckAccess(WarpContext* context, std::uint32_t mask, const std::uint64_t* addresses,
                 std::uint32_t bytes) {
  Warp& warp = WarpOf(context);
  for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    if (((mask >> lane) & 1) == 0) continue;
    const std::uint64_t address = addresses[lane];
    const bool inside = Within(address, bytes, warp.window_begin, warp.window_bytes) ||
                        Within(address, bytes, warp.arena_begin, warp.arena_bytes) ||
                        warp.runner->job().memory->IsAccessible(address, bytes);
    if (!inside) {
      warp.runner->Raise(ExecError::kIllegalAddress, "illegal address " + Hex(address), lane);
    }
    if (address % bytes != 0) {
      warp.runner->Raise(ExecError::kMisalignedAddress, "misaligned address " + Hex(address), lane);
    }
  }
}

void MisalignedShared(WarpContext* context, std::uint32_t mask) {
  WarpOf(context).runner->Raise(ExecError::kMisalignedAddress,
                                "misaligned address in shared memory", FirstLane(mask));
}

std::uint32_t Barrier(WarpContext* context, std::uint32_t id, std::uint32_t threads,
                      std::uint32_t mask, std::uint32_t predicates, std::uint32_t mode) {
  Warp& warp = WarpOf(context);
  return warp.runner->Wait(warp, id, threads, mask, predicates, static_cast<BarrierMode>(mode));
}

void Yield(WarpContext* context) { WarpOf(context).runner->Yield(WarpOf(context)); }

void Trap(WarpContext* context, std::uint32_t mask) {
  WarpOf(context).runner->Raise(ExecError::kTrap, "trap", FirstLane(mask));
}

void LocalOverflow(WarpContext* context) {
  WarpOf(context).runner->Raise(ExecError::kIllegalAddress, "local memory exhausted", 0);
}

std::uint64_t Clock() { return __rdtsc(); }

std::uint64_t GlobalTimer() {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

void Print(WarpContext*, std::uint32_t mask, const std::uint64_t* formats,
           const std::uint64_t* arguments, std::uint32_t* results) {
  for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    if (((mask >> lane) & 1) == 0) continue;
    results[lane] = static_cast<std::uint32_t>(
        DevicePrint(reinterpret_cast<const char*>(formats[lane]),
                    reinterpret_cast<const std::uint8_t*>(arguments[lane])));
  }
}

// Each block of the device's heap is an allocation of its own, as large as it asks.
void Allocate(WarpContext* context, std::uint32_t mask, const std::uint64_t* sizes,
              std::uint64_t* addresses) {
  DeviceMemory& memory = *WarpOf(context).runner->job().memory;
  constexpr std::uint64_t kLargest = std::uint64_t{1} << 32;
  for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    addresses[lane] = 0;
    if (((mask >> lane) & 1) == 0 || sizes[lane] > kLargest) continue;
    const auto allocated = memory.Allocate(sizes[lane] + 1);
    if (allocated) addresses[lane] = *allocated;
  }
}

void Release(WarpContext* context, std::uint32_t mask, const std::uint64_t* addresses) {
  DeviceMemory& memory = *WarpOf(context).runner->job().memory;
  for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    if (((mask >> lane) & 1) != 0 && addresses[lane] != 0) memory.Free(addresses[lane]);
  }
}

void AssertFail(WarpContext* context, std::uint32_t mask, const std::uint64_t* messages,
                const std::uint64_t* files, const std::uint64_t* lines,
                const std::uint64_t* functions) {
  const std::uint32_t lane = FirstLane(mask);
  const auto text = [lane](const std::uint64_t* addresses) {
    return std::string(reinterpret_cast<const char*>(addresses[lane]));
  };
  WarpOf(context).runner->Raise(ExecError::kAssert,
                                text(files) + ":" + std::to_string(lines[lane]) + ": " +
                                    text(functions) + ": Assertion `" + text(messages) + "' failed",
                                lane);
}

}  // namespace

const RuntimeCalls& Runtime() {
  static const RuntimeCalls calls = {
      .check_access = &CheckAccess,
      .misaligned_shared = &MisalignedShared,
      .barrier = &Barrier,
      .yield = &Yield,
      .trap = &Trap,
      .local_overflow = &LocalOverflow,
      .rounded = &RoundedMath,
      .clock = &Clock,
      .global_timer = &GlobalTimer,
      .print = &Print,
      .allocate = &Allocate,
      .release = &Release,
      .assert_fail = &AssertFail,
  };
  return calls;
}

}  // namespace torpor::emulator

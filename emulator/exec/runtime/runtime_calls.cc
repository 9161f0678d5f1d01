#include "emulator/exec/runtime/runtime_calls.h"

#include <time.h>
#include <x86intrin.h>

#include <iterator>
#include <string>

#include "emulator/exec/runtime/arena.h"
#include "emulator/exec/runtime/block_runner.h"
#include "emulator/exec/runtime/bulk_copy.h"
#include "emulator/exec/runtime/device_print.h"
#include "emulator/exec/runtime/device_reader.h"
#include "emulator/exec/runtime/matrix_tile.h"
#include "emulator/exec/runtime/mbarrier_calls.h"
#include "emulator/exec/runtime/rounded_math.h"
#include "emulator/exec/runtime/texture_access.h"

namespace torpor::emulator {
namespace {

Warp& WarpOf(WarpContext* context) { return *static_cast<Warp*>(context); }

std::uint32_t FaultingLane(std::uint32_t mask) {
  return mask == 0 ? 0 : static_cast<std::uint32_t>(__builtin_ctz(mask));
}

// Fails as the lane did, and leaves the block.
[[noreturn]] void Raise(WarpContext* context, ExecError code, const char* what,
                        std::uint32_t lane) {
  BlockRunner& runner = *WarpOf(context).runner;
  runner.Fail(code, what, lane);
  runner.Escape();
}

void CheckAccess(WarpContext* context, std::uint32_t mask, const std::uint64_t* addresses,
                 std::uint32_t bytes) {
  Warp& warp = WarpOf(context);
  for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    if (((mask >> lane) & 1) == 0) continue;
    const std::uint64_t address = addresses[lane];
    if (!MayAccess(warp, address, bytes)) {
      warp.runner->Fail(ExecError::kIllegalAddress, "illegal address " + Hex(address), lane);
      warp.runner->Escape();
    }
    if (address % bytes != 0) {
      warp.runner->Fail(ExecError::kMisalignedAddress, "misaligned address " + Hex(address), lane);
      warp.runner->Escape();
    }
  }
}

void MisalignedShared(WarpContext* context, std::uint32_t mask) {
  Raise(context, ExecError::kMisalignedAddress, "misaligned address in shared memory",
        FaultingLane(mask));
}

std::uint32_t Barrier(WarpContext* context, std::uint32_t id, std::uint32_t threads,
                      std::uint32_t mask, std::uint32_t predicates, std::uint32_t mode) {
  Warp& warp = WarpOf(context);
  const bool goes_on =
      warp.runner->Wait(warp, id, threads, mask, predicates, static_cast<BarrierMode>(mode));
  return goes_on ? 1 : 0;
}

std::uint32_t WaitForBlock(WarpContext* context) {
  Warp& warp = WarpOf(context);
  return warp.runner->WaitForBlock(warp) ? 1 : 0;
}

std::uint32_t Yield(WarpContext* context) {
  return WarpOf(context).runner->Yield(WarpOf(context)) ? 1 : 0;
}

std::uint32_t TakeTurns(WarpContext* context) {
  return WarpOf(context).runner->TakeTurns(WarpOf(context)) ? 1 : 0;
}

void Trap(WarpContext* context, std::uint32_t mask) {
  Raise(context, ExecError::kTrap, "trap", FaultingLane(mask));
}

void LocalOverflow(WarpContext* context) {
  Raise(context, ExecError::kIllegalAddress, "local memory exhausted", 0);
}

std::uint64_t Clock() { return __rdtsc(); }

std::uint64_t GlobalTimer() {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// Prints for a lane. Returns false if the kernel may not read some text or argument.
bool PrintLane(Warp& warp, std::uint32_t lane, std::uint64_t format, std::uint64_t arguments,
               std::uint32_t& result) {
  const auto printed = DevicePrint(DeviceReader(warp), format, arguments);
  if (!printed) {
    warp.runner->Fail(printed.failure().code, printed.failure().message + " in printf", lane);
    return false;
  }
  result = static_cast<std::uint32_t>(*printed);
  return true;
}

void Print(WarpContext* context, std::uint32_t mask, const std::uint64_t* formats,
           const std::uint64_t* arguments, std::uint32_t* results) {
  Warp& warp = WarpOf(context);
  for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    if (((mask >> lane) & 1) == 0) continue;
    if (!PrintLane(warp, lane, formats[lane], arguments[lane], results[lane])) {
      warp.runner->Escape();
    }
  }
}

// Each block of the device's heap is a separate allocation of exactly the requested size.
void Allocate(WarpContext* context, std::uint32_t mask, const std::uint64_t* sizes,
              std::uint64_t* addresses) {
  DeviceMemory& memory = *WarpOf(context).runner->job().memory.device;
  constexpr std::uint64_t kLargest = std::uint64_t{1} << 32;
  for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    addresses[lane] = 0;
    if (((mask >> lane) & 1) == 0 || sizes[lane] > kLargest) continue;
    const auto allocated = memory.Allocate(sizes[lane] + 1);
    if (allocated) addresses[lane] = *allocated;
  }
}

void Release(WarpContext* context, std::uint32_t mask, const std::uint64_t* addresses) {
  DeviceMemory& memory = *WarpOf(context).runner->job().memory.device;
  for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    if (((mask >> lane) & 1) != 0 && addresses[lane] != 0) memory.Free(addresses[lane]);
  }
}

std::string Bracketed(std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  return std::string("[") + std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z) +
         "]";
}

// An assertion, with texts at addresses of the kernel.
struct Assertion {
  std::uint64_t message = 0;
  std::uint64_t file = 0;
  std::uint64_t line = 0;
  std::uint64_t function = 0;
};

// Prints the driver's line about a failed assertion of a thread. Returns false if some text is
// unreadable; the caller then fails with kIllegalAddress.
bool DescribeAssertion(const Warp& warp, std::uint32_t lane, const Assertion& assertion,
                       std::string& description) {
  constexpr std::size_t kMaxCharacters = 4096;
  const DeviceReader reader(warp);
  std::string texts[3];
  const std::uint64_t addresses[3] = {assertion.file, assertion.function, assertion.message};
  for (std::size_t i = 0; i < std::size(texts); ++i) {
    if (reader.ReadText(texts[i], addresses[i], kMaxCharacters)) continue;
    warp.runner->Fail(ExecError::kIllegalAddress,
                      "illegal address " + Hex(addresses[i]) + " in assert", lane);
    return false;
  }
  const std::uint32_t* const tid = warp.lane_tids + lane;
  description =
      texts[0] + ":" + std::to_string(assertion.line) + ": " + texts[1] +
      ": block: " + Bracketed(warp.ctaid[0], warp.ctaid[1], warp.ctaid[2]) +
      ", thread: " + Bracketed(tid[0], tid[kWarpLanes], tid[std::size_t{2} * kWarpLanes]) +
      " Assertion `" + texts[2] + "` failed.";
  return true;
}

// As on a GPU, prints a line for each failing thread of this warp, and no line for other warps.
void ReportAssertions(const Warp& warp, std::uint32_t mask, const std::uint64_t* messages,
                      const std::uint64_t* files, const std::uint64_t* lines,
                      const std::uint64_t* functions) {
  std::string text;
  for (std::uint32_t lane = 0; lane < kWarpLanes; ++lane) {
    if (((mask >> lane) & 1) == 0) continue;
    std::string line;
    const Assertion assertion{messages[lane], files[lane], lines[lane], functions[lane]};
    if (!DescribeAssertion(warp, lane, assertion, line)) return;
    if (!text.empty()) text += '\n';
    text += line;
  }
  warp.runner->Fail(ExecError::kAssert, text);
}

void AssertFail(WarpContext* context, std::uint32_t mask, const std::uint64_t* messages,
                const std::uint64_t* files, const std::uint64_t* lines,
                const std::uint64_t* functions) {
  const Warp& warp = WarpOf(context);
  ReportAssertions(warp, mask, messages, files, lines, functions);
  warp.runner->Escape();
}

}  // namespace

const RuntimeCalls& Runtime() {
  static const RuntimeCalls calls = {
      .check_access = &CheckAccess,
      .misaligned_shared = &MisalignedShared,
      .barrier = &Barrier,
      .block_barrier = &WaitForBlock,
      .yield = &Yield,
      .take_turns = &TakeTurns,
      .trap = &Trap,
      .local_overflow = &LocalOverflow,
      .rounded = &RoundedMath,
      .clock = &Clock,
      .global_timer = &GlobalTimer,
      .print = &Print,
      .allocate = &Allocate,
      .release = &Release,
      .assert_fail = &AssertFail,
      .texture = &AccessTexture,
      .surface = &AccessSurface,
      .texture_query = &QueryTexture,
      .mbarrier = &RunMbarrier,
      .bulk_copy = &BulkCopy,
      .load_tile = &LoadTile,
      .store_tile = &StoreTile,
  };
  return calls;
}

}  // namespace torpor::emulator

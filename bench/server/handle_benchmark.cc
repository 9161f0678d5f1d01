// What larger chunks would save `address_mode: map`, and what they would cost: how many chunks
// swap-ins map over a trace of PyTorch processes, how much memory of those chunks is unused, and
// how long mapping takes with chunks of different sizes (docs/decisions/0020). Mapping uses the
// emulator's driver unless TORPOR_BENCH_DRIVER_DIR names the folder of another ("" for the
// system's).
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <string>

#include "base/check.h"
#include "bench/run_benchmarks.h"
#include "memory/range_allocator.h"
#include "memory/trace/model_trace.h"
#include "server/executor/image/physical_pool.h"

namespace torpor::executor {
namespace {

using Kind = memory::TraceEvent::Kind;

constexpr Bytes kRangeBytes = 16 * kGiB;  // of a function's addresses

const memory::AllocationTrace& Trace() {
  static const auto* const trace = new memory::AllocationTrace(memory::MakeModelTrace({}));
  return *trace;
}

double Share(std::size_t part, std::size_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

// A function's allocations, in chunks of one size.
struct Function {
  explicit Function(Bytes chunk_bytes) : range(kRangeBytes, chunk_bytes) {}

  memory::RangeAllocator range;
  std::map<std::uint32_t, memory::Block> blocks;
  bool is_loaded = false;
};

// What swap-ins of a trace have mapped.
struct SwapIns {
  std::size_t count = 0;
  std::size_t chunks = 0;
  Bytes backed = 0;  // when functions left
  Bytes unused = 0;  // of that
};

SwapIns Replay(Bytes chunk_bytes) {
  std::map<std::uint32_t, Function> functions;
  SwapIns sums;
  for (const memory::TraceEvent& event : Trace()) {
    Function& function = functions.try_emplace(event.function, chunk_bytes).first->second;
    switch (event.kind) {
      case Kind::kLoad:
        if (function.is_loaded) break;
        function.is_loaded = true;
        sums.chunks += function.range.occupied_bytes() / chunk_bytes;
        sums.count += function.blocks.empty() ? 0 : 1;
        break;
      case Kind::kEvict:
        sums.backed += function.range.occupied_bytes();
        sums.unused += function.range.occupied_bytes() - function.range.live_bytes();
        function.is_loaded = false;
        break;
      case Kind::kAllocate:
        function.blocks[event.block] = function.range.Allocate(event.bytes).value();
        break;
      case Kind::kFree:
        function.range.Free(function.blocks.at(event.block).offset);
        function.blocks.erase(event.block);
        break;
      case Kind::kIdle:
        break;
    }
  }
  return sums;
}

// Bookkeeping: the counters are the same on every machine.
void SwapInsByChunk(benchmark::State& state) {
  const Bytes chunk_bytes = static_cast<Bytes>(state.range(0)) * kMiB;
  SwapIns sums;
  for ([[maybe_unused]] auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores)
    sums = Replay(chunk_bytes);
  }
  state.counters["swap_ins"] = static_cast<double>(sums.count);
  state.counters["handles_each"] = Share(sums.chunks, sums.count);
  state.counters["unused_share"] = Share(sums.unused, sums.backed);
}
BENCHMARK(SwapInsByChunk)->ArgName("MiB")->Arg(2)->Arg(4)->Arg(8)->Arg(16)->Arg(32)->Iterations(1);

std::string DriverFolder() {
  const char* const folder = std::getenv("TORPOR_BENCH_DRIVER_DIR");
  return folder == nullptr ? TORPOR_BENCH_EMULATOR_DIR : folder;
}

// Maps and unmaps an image of 1 GiB as MappedBacking does: a call a handle, one for the access, one
// to unmap.
void MapAnImage(benchmark::State& state) {
  constexpr Bytes kImageBytes = kGiB;
  const Bytes handle_bytes = static_cast<Bytes>(state.range(0)) * kMiB;
  const absl::StatusOr<CudaDriver> driver = LoadCudaDriver(DriverFolder());
  TORPOR_CHECK(driver.ok());
  const auto device = Device::Open(*driver, 0);
  TORPOR_CHECK(device.ok());
  const auto pool = PhysicalPool::Create(**device, kImageBytes, handle_bytes);
  TORPOR_CHECK(pool.ok());
  const auto handles = (*pool)->Take(kImageBytes / handle_bytes);
  TORPOR_CHECK(handles.ok());
  CUdeviceptr base = 0;
  TORPOR_CHECK(driver->MemAddressReserve(&base, kImageBytes, 0, 0, 0) == CUDA_SUCCESS);
  const CUmemAccessDesc access{(*device)->location(), CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  for ([[maybe_unused]] auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores)
    CUdeviceptr address = base;
    for (const CUmemGenericAllocationHandle handle : *handles) {
      TORPOR_CHECK(driver->MemMap(address, handle_bytes, 0, handle, 0) == CUDA_SUCCESS);
      address += handle_bytes;
    }
    TORPOR_CHECK(driver->MemSetAccess(base, kImageBytes, &access, 1) == CUDA_SUCCESS);
    TORPOR_CHECK(driver->MemUnmap(base, kImageBytes) == CUDA_SUCCESS);
  }
  state.counters["handles"] = static_cast<double>(handles->size());
  driver->MemAddressFree(base, kImageBytes);
  (*pool)->Return(*handles);
}
BENCHMARK(MapAnImage)->ArgName("MiB")->Arg(2)->Arg(8)->Arg(32)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace torpor::executor

int main(int argc, char** argv) {
  setenv("TORPOR_EMULATOR_MEMORY", "2GiB", 0);
  return torpor::bench::RunBenchmarks(argc, argv);
}

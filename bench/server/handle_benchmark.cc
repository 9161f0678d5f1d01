// What physical handles of two sizes (docs/memory.md) would save `address_mode: map`, and what they
// would cost: how many handles swap-ins map by different rules over a trace of PyTorch processes,
// how often a pool that is exact to the chunk asks the driver for handles of the other size, and
// how long mapping takes with either size. The emulator's driver unless TORPOR_BENCH_DRIVER_DIR
// names the folder of another ("" for the system's).
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "bench/run_benchmarks.h"
#include "memory/handle_balance.h"
#include "memory/range_allocator.h"
#include "memory/trace/model_trace.h"
#include "memory/window_backing.h"
#include "server/executor/image/physical_pool.h"

namespace torpor::executor {
namespace {

using memory::HandleCounts;
using Kind = memory::TraceEvent::Kind;

constexpr Bytes kRangeBytes = 16 * kGiB;  // of a function's addresses
constexpr memory::HandleSizes kSizes;
constexpr HandleCounts kPlenty = {1u << 30, 1u << 30};

const memory::AllocationTrace& Trace() {
  static const auto* const trace = new memory::AllocationTrace(memory::MakeModelTrace({}));
  return *trace;
}

double Share(std::size_t part, std::size_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

// What is mapped for a function while it is on the GPU.
struct Function {
  explicit Function(Bytes chunk_bytes) : range(kRangeBytes, chunk_bytes) {}

  memory::RangeAllocator range;
  std::map<std::uint32_t, memory::Block> blocks;
  memory::Backing backed;
  bool is_loaded = false;

  memory::ExtentSet Occupied() const {
    memory::ExtentSet occupied;
    for (const memory::Block& block : range.OccupiedBlocks()) {
      occupied.Add({block.offset, block.end()});
    }
    return occupied;
  }
};

HandleCounts CountsOf(const memory::Backing& backed) {
  return {backed.small.size(), backed.large.size()};
}

// Which handles back a function's memory.
class Rule {
 public:
  virtual ~Rule() = default;
  // All that is occupied is backed from now on. Gives how many handles were mapped.
  virtual HandleCounts Back(Function& function) = 0;
  // What nothing of the function lies in any more, since `freed` is, is not backed any more.
  virtual void Release(Function& function, memory::Extent freed) = 0;
  virtual void ReleaseAll(Function& function) { function.backed = {}; }
  virtual Bytes BackedBytes(const Function& function) const {
    return CountsOf(function.backed).bytes(kSizes);
  }
  virtual void OnIdle() {}
};

// What swap-ins of a trace have mapped.
struct SwapIns {
  std::size_t count = 0;
  HandleCounts handles;
  Bytes backed = 0;  // when functions left
  Bytes unused = 0;
  Bytes peak = 0;  // of what all functions on the GPU occupy
};

SwapIns Replay(Rule& rule, Bytes chunk_bytes = kSizes.small_bytes) {
  std::map<std::uint32_t, Function> functions;
  SwapIns sums;
  Bytes occupied = 0;
  for (const memory::TraceEvent& event : Trace()) {
    Function& function = functions.try_emplace(event.function, chunk_bytes).first->second;
    const Bytes before = function.is_loaded ? function.range.occupied_bytes() : 0;
    switch (event.kind) {
      case Kind::kLoad: {
        if (function.is_loaded) break;
        function.is_loaded = true;
        const HandleCounts mapped = rule.Back(function);
        sums.handles.small += mapped.small;
        sums.handles.large += mapped.large;
        sums.count += function.blocks.empty() ? 0 : 1;
        break;
      }
      case Kind::kEvict: {
        sums.backed += rule.BackedBytes(function);
        sums.unused += rule.BackedBytes(function) - function.range.live_bytes();
        function.is_loaded = false;
        rule.ReleaseAll(function);
        break;
      }
      case Kind::kAllocate:
        function.blocks[event.block] = function.range.Allocate(event.bytes).value();
        rule.Back(function);
        break;
      case Kind::kFree: {
        const memory::Block freed = function.blocks.at(event.block);
        function.blocks.erase(event.block);
        function.range.Free(freed.offset);
        rule.Release(function, {freed.offset, freed.end()});
        break;
      }
      case Kind::kIdle:
        rule.OnIdle();
        break;
    }
    occupied += function.is_loaded ? function.range.occupied_bytes() : 0;
    occupied -= before;
    sums.peak = std::max(sums.peak, occupied);
  }
  return sums;
}

// Chunks of one size, as executors have them.
class OneSize final : public Rule {
 public:
  explicit OneSize(Bytes chunk_bytes) : chunk_bytes_(chunk_bytes) {}

  HandleCounts Back(Function& function) override {
    return {function.range.occupied_bytes() / chunk_bytes_, 0};
  }
  void Release(Function&, memory::Extent) override {}
  Bytes BackedBytes(const Function& function) const override {
    return function.range.occupied_bytes();
  }

 private:
  const Bytes chunk_bytes_;
};

// Windows of which so much is occupied have large handles, until nothing is; of either size there
// are enough.
class ByShare final : public Rule {
 public:
  explicit ByShare(double share) : windows_(kRangeBytes, kSizes, share) {}

  HandleCounts Back(Function& function) override {
    const auto change = windows_.Plan(function.Occupied(), function.backed, kPlenty).value();
    function.backed.small.insert(change.small.begin(), change.small.end());
    function.backed.large.insert(change.large.begin(), change.large.end());
    return change.counts();
  }
  void Release(Function& function, memory::Extent freed) override {
    const auto unused = windows_.Unused(freed, function.Occupied(), function.backed);
    for (const std::uint64_t chunk : unused.small) function.backed.small.erase(chunk);
    for (const std::uint64_t window : unused.large) function.backed.large.erase(window);
  }

 private:
  const memory::WindowBacking windows_;
};

// Only windows that one allocation covers, and that are unused with it, have large handles.
class InOneAllocation final : public Rule {
 public:
  HandleCounts Back(Function& function) override {
    const HandleCounts before = CountsOf(function.backed);
    for (const auto& [number, block] : function.blocks) AddWindowsIn(block, function.backed);
    const auto change = windows_.Plan(function.Occupied(), function.backed, {kPlenty.small, 0});
    function.backed.small.insert(change.value().small.begin(), change.value().small.end());
    const HandleCounts now = CountsOf(function.backed);
    return {now.small - before.small, now.large - before.large};
  }
  void Release(Function& function, memory::Extent) override {
    ReleaseAll(function);
    Back(function);
  }

 private:
  static void AddWindowsIn(const memory::Block& block, memory::Backing& backed) {
    const std::size_t ratio = kSizes.small_per_large();
    Bytes window = (block.offset + kSizes.large_bytes - 1) / kSizes.large_bytes;
    for (; (window + 1) * kSizes.large_bytes <= block.end(); ++window) {
      const auto small = backed.small.lower_bound(window * ratio);
      if (small == backed.small.end() || *small / ratio != window) backed.large.insert(window);
    }
  }

  const memory::WindowBacking windows_{kRangeBytes, kSizes};
};

// A pool of so many bytes in which nothing is ever backed that is not occupied, so that torpord's
// count of free chunks is right: large handles for occupied windows only, and small ones instead
// once they are not.
class Exact final : public Rule {
 public:
  explicit Exact(Bytes bytes) : free_(memory::StartCounts(bytes, kSizes, {})) {}

  HandleCounts Back(Function& function) override {
    const memory::ExtentSet occupied = function.Occupied();
    auto change = windows_.Plan(occupied, function.backed, {kPlenty.small, free_.large});
    for (; change->small.size() > free_.small; ++splits_) {
      TORPOR_CHECK(free_.large > 0);
      free_.large -= 1;
      free_.small += kSizes.small_per_large();
      change = windows_.Plan(occupied, function.backed, {kPlenty.small, free_.large});
    }
    function.backed.small.insert(change->small.begin(), change->small.end());
    function.backed.large.insert(change->large.begin(), change->large.end());
    free_.small -= change->small.size();
    free_.large -= change->large.size();
    return change->counts();
  }
  void Release(Function& function, memory::Extent freed) override {
    const memory::ExtentSet occupied = function.Occupied();
    const Bytes first = freed.begin / kSizes.large_bytes;
    bool is_remapped = false;
    for (Bytes window = first; window * kSizes.large_bytes < freed.end; ++window) {
      const memory::Extent whole = {window * kSizes.large_bytes, (window + 1) * kSizes.large_bytes};
      if (occupied.Contains(whole) || function.backed.large.erase(window) == 0) continue;
      free_.large += 1;
      if (occupied.Within(whole).empty()) continue;
      is_remapped = true;
      ++remapped_;
    }
    const auto unused = windows_.Unused(freed, occupied, function.backed);
    for (const std::uint64_t chunk : unused.small) function.backed.small.erase(chunk);
    free_.small += unused.small.size();
    if (is_remapped) Back(function);
  }
  void ReleaseAll(Function& function) override {
    const HandleCounts counts = CountsOf(function.backed);
    free_.small += counts.small;
    free_.large += counts.large;
    function.backed = {};
  }
  void OnIdle() override {
    while (const auto exchange = memory::NextExchange(free_, kSizes, {})) {
      free_.small += exchange->create.small - exchange->release.small;
      free_.large += exchange->create.large - exchange->release.large;
      ++exchanges_;
    }
  }

  // Large handles that were split because somebody waited for small ones; exchanges in the
  // background; and windows whose live bytes had to be copied, since others of it were freed.
  std::size_t splits() const { return splits_; }
  std::size_t exchanges() const { return exchanges_; }
  std::size_t remapped() const { return remapped_; }

 private:
  const memory::WindowBacking windows_{kRangeBytes, kSizes, 1};
  HandleCounts free_;
  std::size_t splits_ = 0;
  std::size_t exchanges_ = 0;
  std::size_t remapped_ = 0;
};

void Report(const SwapIns& sums, benchmark::State& state) {
  state.counters["swap_ins"] = static_cast<double>(sums.count);
  state.counters["handles_each"] = Share(sums.handles.small + sums.handles.large, sums.count);
  state.counters["unused_share"] = Share(sums.unused, sums.backed);
}

// Bookkeeping: the counters are the same on every machine.
void SwapInsByChunk(benchmark::State& state) {
  const Bytes chunk_bytes = static_cast<Bytes>(state.range(0)) * kMiB;
  SwapIns sums;
  for ([[maybe_unused]] auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores)
    OneSize rule(chunk_bytes);
    sums = Replay(rule, chunk_bytes);
  }
  Report(sums, state);
}
BENCHMARK(SwapInsByChunk)->ArgName("MiB")->Arg(2)->Arg(4)->Arg(8)->Arg(16)->Arg(32)->Iterations(1);

void SwapInsByShare(benchmark::State& state) {
  SwapIns sums;
  for ([[maybe_unused]] auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores)
    ByShare rule(static_cast<double>(state.range(0)) / 100);
    sums = Replay(rule);
  }
  Report(sums, state);
}
BENCHMARK(SwapInsByShare)->ArgName("percent")->Arg(75)->Arg(100)->Iterations(1);

void SwapInsInOneAllocation(benchmark::State& state) {
  SwapIns sums;
  for ([[maybe_unused]] auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores)
    InOneAllocation rule;
    sums = Replay(rule);
  }
  Report(sums, state);
}
BENCHMARK(SwapInsInOneAllocation)->Iterations(1);

// The pool has so much more than the functions ever occupy together.
void SwapInsExact(benchmark::State& state) {
  OneSize chunks(kSizes.small_bytes);
  const Bytes peak = Replay(chunks).peak;
  const Bytes spare = peak * static_cast<Bytes>(state.range(0)) / 100;
  for ([[maybe_unused]] auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores)
    Exact rule(peak + spare);
    const SwapIns sums = Replay(rule);
    Report(sums, state);
    state.counters["splits_each"] = Share(rule.splits(), sums.count);
    state.counters["exchanges_each"] = Share(rule.exchanges(), sums.count);
    state.counters["remapped"] = static_cast<double>(rule.remapped());
  }
}
BENCHMARK(SwapInsExact)->ArgName("spare_percent")->Arg(0)->Arg(1)->Arg(10)->Iterations(1);

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
BENCHMARK(MapAnImage)->ArgName("MiB")->Arg(2)->Arg(32)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace torpor::executor

int main(int argc, char** argv) {
  setenv("TORPOR_EMULATOR_MEMORY", "2GiB", 0);
  return torpor::bench::RunBenchmarks(argc, argv);
}

// What a launch costs the executor besides the driver: taking a command off a batch, decoding and
// checking it, and the call of a driver that does nothing.
#include <benchmark/benchmark.h>

#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "server/executor/image/address_table.h"
#include "tests/server/executor/session/batch_builder.h"
#include "tests/server/executor/session/session_fixture.h"

namespace torpor::executor {
namespace {

constexpr std::uint64_t kLease = 5;
constexpr int kLaunches = 256;

// The fake session with one kernel of so many words, whose launches do nothing.
struct BenchSession : FakeSession {
  BenchSession(AddressMode mode, std::size_t words) : FakeSession({}, mode) {
    cuda.IgnoreLaunches();
    std::vector<FakeCuda::Parameter> layout(words);
    for (std::size_t i = 0; i < words; ++i) layout[i] = {8 * i, 8};
    cuda.SetParameters(std::move(layout));
    const std::vector<std::uint8_t> fatbin = {0x50, 0xED, 0x55, 0xBA, 1, 0, 16, 0,
                                              0,    0,    0,    0,    0, 0, 0,  0};
    const Sha256Digest digest = Sha256(fatbin.data(), fatbin.size());
    modules->Store(digest, memory->tenant(), fatbin).IgnoreError();
    wire::ModuleUse use;
    use.module = 1;
    use.hash = digest;
    wire::KernelCreate create;
    create.kernel = 2;
    create.module = 1;
    create.name = "record";
    Run(BatchBuilder().Add(use).Add(create).Frame(kLease)).IgnoreError();
  }
};

// The session's allocations, of which the first is there from the start, begin so far apart.
constexpr Bytes kApart = 8 * kMiB;

// Of a kernel whose parameters are so many pointers to the session's memory, in turn to each of so
// many allocations.
void RunLaunches(benchmark::State& state, AddressMode mode, std::size_t words,
                 std::size_t allocations = 1) {
  BenchSession session(mode, words);
  for (std::size_t i = 1; i < allocations; ++i) {
    const absl::Status grown =
        session.session->Grow({kApart * i, kApart * i + 2 * kMiB}, session.stream);
    if (!grown.ok()) state.SkipWithError("there is no memory");
  }
  std::vector<std::uint8_t> parameters(8 * words);
  for (std::size_t i = 0; i < words; ++i) {
    const std::uint64_t pointer =
        session.identity.device_base + kApart * (i % allocations) + 4096 * i;
    std::memcpy(&parameters[8 * i], &pointer, sizeof pointer);
  }
  wire::LaunchKernel launch;
  launch.kernel = 2;
  launch.grid = launch.block = {1, 1, 1};
  launch.parameters = parameters;
  BatchBuilder batch;
  for (int i = 0; i < kLaunches; ++i) batch.Add(launch);
  const std::vector<std::uint8_t> frame = batch.Frame(kLease);
  for ([[maybe_unused]] auto _ : state) {
    if (!session.Run(frame).ok()) state.SkipWithError("the batch was refused");
  }
  session.Run(BatchBuilder().Add(wire::DeviceSynchronize{}).Frame(kLease)).IgnoreError();
  if (session.replies.replies.back().async_error != 0) state.SkipWithError("a launch failed");
  state.SetItemsProcessed(state.iterations() * kLaunches);
}

void LaunchOfOneWord(benchmark::State& state) { RunLaunches(state, AddressMode::kMap, 1); }
BENCHMARK(LaunchOfOneWord);

void LaunchOf256Bytes(benchmark::State& state) { RunLaunches(state, AddressMode::kMap, 32); }
BENCHMARK(LaunchOf256Bytes);

void TranslatedLaunchOfOneWord(benchmark::State& state) {
  RunLaunches(state, AddressMode::kTranslate, 1);
}
BENCHMARK(TranslatedLaunchOfOneWord);

void TranslatedLaunchOf256Bytes(benchmark::State& state) {
  RunLaunches(state, AddressMode::kTranslate, 32);
}
BENCHMARK(TranslatedLaunchOf256Bytes);

void TranslatedLaunchOfSevenAllocations(benchmark::State& state) {
  RunLaunches(state, AddressMode::kTranslate, 32, 7);
}
BENCHMARK(TranslatedLaunchOfSevenAllocations);

// A pointer to any of as many blocks as a large image has.
void TranslatedPointer(benchmark::State& state) {
  constexpr Bytes kBlocks = 512;
  std::vector<BackedPart> blocks;
  blocks.reserve(kBlocks);
  for (Bytes i = 0; i < kBlocks; ++i) {
    blocks.push_back({{kApart * i, kApart * i + 2 * kMiB}, kApart * (kBlocks - i)});
  }
  const AddressTable table(1, blocks);
  std::mt19937 random(1);
  std::vector<Bytes> offsets(4096);
  for (Bytes& offset : offsets) offset = kApart * (random() % kBlocks) + 4096;
  for ([[maybe_unused]] auto _ : state) {
    for (const Bytes offset : offsets) benchmark::DoNotOptimize(table.Translate(offset));
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(offsets.size()));
}
BENCHMARK(TranslatedPointer);

}  // namespace
}  // namespace torpor::executor

BENCHMARK_MAIN();

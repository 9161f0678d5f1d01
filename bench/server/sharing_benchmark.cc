// What equal blocks cost torpord: reading an image's states, copying blocks to the tenant's file,
// comparing and moving them, beside a plain copy of as many bytes.
#include <benchmark/benchmark.h>

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "base/check.h"
#include "bench/run_benchmarks.h"
#include "server/repository/tenant_blocks.h"

namespace torpor::server {
namespace {

constexpr auto kImage = wire::SharedMemory::kImage;
constexpr Bytes kBlock = wire::kImageBlockBytes;
constexpr Bytes kImageBytes = 256 * kMiB;
constexpr std::size_t kBlocks = kImageBytes / kBlock;
constexpr memory::EqualRun kAll{0, 0, kBlocks};

std::vector<std::uint8_t> RandomBytes() {
  std::vector<std::uint8_t> random(kImageBytes);
  std::mt19937_64 generator(20261129);
  for (std::size_t i = 0; i < random.size(); i += sizeof(std::uint64_t)) {
    const std::uint64_t word = generator();
    std::memcpy(&random[i], &word, sizeof word);
  }
  return random;
}

// A session whose blocks are uploaded and hashed, at their own places.
std::unique_ptr<SessionFiles> FullImage(const std::shared_ptr<MemoryFile>& tenant) {
  std::unique_ptr<SessionFiles> files = *SessionFiles::Create({.image = kImageBytes});
  files->SetTenantFile(tenant);
  TORPOR_CHECK(files->file(kImage).Write(0, RandomBytes()).ok());
  MappedStates mapped = *files->MapStates({0, kImageBytes});
  mapped.states().NoteUpload({0, kImageBytes});
  for (std::size_t i = 0; i < kBlocks; ++i) mapped.states().SetInStep(i, (i + 1) << 8);
  return files;
}

void CountBytes(benchmark::State& state) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * kImageBytes));
}

void PlainMemcpy(benchmark::State& state) {
  const std::vector<std::uint8_t> from = RandomBytes();
  std::vector<std::uint8_t> to(kImageBytes);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), kImageBytes);
    benchmark::DoNotOptimize(to.data());
  }
  CountBytes(state);
}

void ListStates(benchmark::State& state) {
  const auto files = FullImage(*SessionFiles::CreateTenantFile(kImageBytes));
  for (auto _ : state) {
    TORPOR_CHECK(ListBlocks(*files, {{0, kImageBytes}})->uploaded.size() == kBlocks);
  }
  CountBytes(state);
}

void CopyBlocks(benchmark::State& state) {
  const auto files = FullImage(*SessionFiles::CreateTenantFile(kImageBytes));
  for (auto _ : state) TORPOR_CHECK(CopyToTenantFile(*files, kAll).ok());
  CountBytes(state);
}

// Compares and moves; the image's pages go in the untimed part.
void MoveBlocks(benchmark::State& state) {
  const std::shared_ptr<MemoryFile> tenant = *SessionFiles::CreateTenantFile(kImageBytes);
  const auto files = FullImage(tenant);
  TORPOR_CHECK(CopyToTenantFile(*files, kAll).ok());
  for (auto _ : state) {
    TORPOR_CHECK(MoveToTenantFile(*files, {kAll})->runs.front().count == kBlocks);
    state.PauseTiming();
    MappedStates mapped = *files->MapStates({0, kImageBytes});
    for (std::size_t i = 0; i < kBlocks; ++i) mapped.states().Move(i, memory::kOwnPlace);
    state.ResumeTiming();
  }
  CountBytes(state);
}

void GiveBack(benchmark::State& state) {
  const auto files = FullImage(*SessionFiles::CreateTenantFile(kImageBytes));
  const std::vector<std::uint8_t> bytes = RandomBytes();
  for (auto _ : state) {
    TORPOR_CHECK(files->file(kImage).GiveBack({0, kImageBytes}).ok());
    state.PauseTiming();
    TORPOR_CHECK(files->file(kImage).Write(0, bytes).ok());
    state.ResumeTiming();
  }
  CountBytes(state);
}

constexpr bench::Row kRows[] = {{"PlainMemcpy", PlainMemcpy},
                                {"ListStates", ListStates},
                                {"CopyBlocks", CopyBlocks},
                                {"MoveBlocks", MoveBlocks},
                                {"GiveBack", GiveBack}};

}  // namespace
}  // namespace torpor::server

int main(int argc, char** argv) {
  for (const torpor::bench::Row& row : torpor::server::kRows) {
    benchmark::RegisterBenchmark(row.name, row.run)->Unit(benchmark::kMillisecond)->UseRealTime();
  }
  return torpor::bench::RunBenchmarks(argc, argv);
}

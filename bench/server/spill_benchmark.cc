// An image's way to the disk and back, beside plain direct writes and reads of as many bytes. In
// TORPOR_BENCH_SPILL_DIR, by default the folder of temporary files.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/files.h"
#include "bench/run_benchmarks.h"
#include "server/repository/spilled_image.h"

namespace torpor::server {
namespace {

constexpr auto kImage = wire::SharedMemory::kImage;
constexpr Bytes kImageBytes = 512 * kMiB;

std::string Folder() {
  const char* const named = std::getenv("TORPOR_BENCH_SPILL_DIR");
  return named != nullptr ? named : std::filesystem::temp_directory_path().string();
}

std::vector<std::uint8_t> RandomBytes(Bytes bytes) {
  std::vector<std::uint8_t> random(bytes);
  std::mt19937_64 generator(20261128);
  for (std::uint8_t& byte : random) byte = static_cast<std::uint8_t>(generator());
  return random;
}

// A file of the benchmark, removed at the end.
class SpillFile {
 public:
  SpillFile() : path_(Folder() + "/torpor-spill-benchmark-" + std::to_string(getpid())) {}
  ~SpillFile() { unlink(path_.c_str()); }
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

std::unique_ptr<SessionFiles> FullImage() {
  std::unique_ptr<SessionFiles> files = *SessionFiles::Create({.image = kImageBytes});
  const std::vector<std::uint8_t> piece = RandomBytes(kSpillPieceBytes);
  for (Bytes at = 0; at < kImageBytes; at += piece.size()) {
    TORPOR_CHECK(files->file(kImage).Write(at, piece).ok());
  }
  return files;
}

void CountBytes(benchmark::State& state) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * kImageBytes));
}

// As spilling does, but of one buffer and without checksums.
void DirectWrite(benchmark::State& state) {
  const SpillFile file;
  const std::unique_ptr<SessionFiles> aligned = FullImage();
  void* const buffer = std::aligned_alloc(kDirectBytes, kSpillPieceBytes);
  const std::span<std::uint8_t> piece(static_cast<std::uint8_t*>(buffer), kSpillPieceBytes);
  TORPOR_CHECK(aligned->file(kImage).Read(0, piece).ok());
  for (auto _ : state) {
    const auto open = *SystemFiles().Create(file.path(), 0600, Caching::kDirect);
    for (Bytes at = 0; at < kImageBytes; at += piece.size()) {
      TORPOR_CHECK(open->Write(at, piece).ok());
    }
    TORPOR_CHECK(open->Sync().ok());
  }
  std::free(buffer);
  CountBytes(state);
}

void DirectRead(benchmark::State& state) {
  const SpillFile file;
  TORPOR_CHECK(WriteSpilledImage(SystemFiles(), file.path(), *FullImage(), {}).ok());
  void* const buffer = std::aligned_alloc(kDirectBytes, kSpillPieceBytes);
  const std::span<std::uint8_t> piece(static_cast<std::uint8_t*>(buffer), kSpillPieceBytes);
  for (auto _ : state) {
    const auto open = *SystemFiles().Open(file.path(), Caching::kDirect);
    for (Bytes at = 0; at < kImageBytes; at += piece.size()) {
      TORPOR_CHECK(open->Read(at, piece).ok());
    }
  }
  std::free(buffer);
  CountBytes(state);
}

void SpillOut(benchmark::State& state) {
  const SpillFile file;
  const std::unique_ptr<SessionFiles> files = FullImage();
  for (auto _ : state) {
    TORPOR_CHECK(WriteSpilledImage(SystemFiles(), file.path(), *files, {}).ok());
  }
  CountBytes(state);
}

// The image's pages were given back, as they are on the disk: the way back fills them again.
void SpillBack(benchmark::State& state) {
  const SpillFile file;
  const std::unique_ptr<SessionFiles> files = FullImage();
  const auto image = *WriteSpilledImage(SystemFiles(), file.path(), *files, {});
  for (auto _ : state) {
    state.PauseTiming();
    TORPOR_CHECK(files->GiveBackPages(kImage).ok());
    state.ResumeTiming();
    TORPOR_CHECK(ReadSpilledImage(SystemFiles(), file.path(), image, *files).ok());
  }
  CountBytes(state);
}

constexpr bench::Row kRows[] = {{"DirectWrite", DirectWrite},
                                {"SpillOut", SpillOut},
                                {"DirectRead", DirectRead},
                                {"SpillBack", SpillBack}};

}  // namespace
}  // namespace torpor::server

int main(int argc, char** argv) {
  for (const torpor::bench::Row& row : torpor::server::kRows) {
    benchmark::RegisterBenchmark(row.name, row.run)->Unit(benchmark::kMillisecond)->UseRealTime();
  }
  return torpor::bench::RunBenchmarks(argc, argv);
}

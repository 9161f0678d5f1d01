#include "bench/emulator/emulated_gpu.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <utility>

namespace torpor::emulator {
namespace {

// A window that is all memory: what is measured here is neither allocation nor faults.
class FlatMemory final : public DeviceMemory {
 public:
  static constexpr Bytes kBytes = kGiB;

  FlatMemory() {
    void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    begin_ = next_ = reinterpret_cast<std::uint64_t>(memory);
  }
  ~FlatMemory() override { munmap(reinterpret_cast<void*>(begin_), kBytes); }

  std::uint64_t window_begin() const override { return begin_; }
  std::uint64_t window_end() const override { return begin_ + kBytes; }
  bool IsAccessible(std::uint64_t, Bytes) const override { return false; }
  ExecResult<std::uint64_t> Allocate(Bytes size) override {
    const std::uint64_t address = next_;
    next_ += RoundUp(size, 4096);
    return address;
  }
  void Free(std::uint64_t) override {}

 private:
  std::uint64_t begin_ = 0;
  std::uint64_t next_ = 0;
};

[[noreturn]] void Fail(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::abort();
}

}  // namespace

EmulatedGpu::EmulatedGpu() : memory_(std::make_unique<FlatMemory>()) {
  std::ifstream file(TORPOR_BENCH_PTX);
  const std::string ptx{std::istreambuf_iterator<char>(file), {}};
  auto loaded = Program::Load(ptx, *memory_, DeviceTraits{});
  if (!loaded) Fail(loaded.failure().message);
  program_ = std::move(*loaded);
}

EmulatedGpu::~EmulatedGpu() = default;

void EmulatedGpu::Preload(const char* kernel, Dim3 block) {
  const auto result = program_->Preload(kernel, block);
  if (!result) Fail(result.failure().message);
}

float* EmulatedGpu::Array(std::size_t size) {
  auto* const data = reinterpret_cast<float*>(*memory_->Allocate(size * sizeof(float)));
  for (std::size_t i = 0; i < size; ++i) data[i] = static_cast<float>(i % 7);
  return data;
}

void EmulatedGpu::Launch(const char* kernel, const LaunchConfig& config) {
  const auto result = program_->Launch(kernel, config);
  if (!result) Fail(result.failure().message);
}

}  // namespace torpor::emulator

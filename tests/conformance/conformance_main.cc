// ptx_conformance: every family of PTX instructions against an independent model, on whichever GPU
// a driver library gives: the emulator's, or a real one.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <map>
#include <vector>

#include "tests/conformance/comparison.h"
#include "tests/conformance/gpu.h"
#include "tests/conformance/kernel_text.h"
#include "tests/conformance/ptx_case.h"

namespace torpor::conformance {
namespace {

constexpr unsigned kBlocks = 16;
constexpr std::size_t kWarps = std::size_t{kBlocks} * kBlockWarps;
constexpr std::size_t kThreads = kWarps * kWarpLanes;

struct Options {
  std::string library = "libcuda.so.1";
  std::string only;
  unsigned seed = 1;
  bool prints_ptx = false;
};

struct Buffers {
  explicit Buffers(Gpu& gpu)
      : operands(gpu.Allocate(kThreads * sizeof(Operands))),
        results(gpu.Allocate(kThreads * sizeof(Word))),
        scratch(gpu.Allocate(kThreads * kScratchBytes)) {}

  CUdeviceptr operands;
  CUdeviceptr results;
  CUdeviceptr scratch;
};

// What became of the cases of one family.
struct Tally {
  int cases = 0;
  int failed = 0;
  double most = 0;  // of Distance, where there is a tolerance
};

std::vector<PtxCase> AllCases() {
  std::vector<PtxCase> all;
  for (auto* const cases : {IntegerCases, BitCases, ComparisonCases, FloatCases, ApproximationCases,
                            HalfCases, ConversionCases, MemoryCases, AtomicCases, WarpCases,
                            MatrixCases, AsynchronousCopyCases, ControlCases}) {
    for (PtxCase& one : cases()) all.push_back(std::move(one));
  }
  return all;
}

std::vector<Warp> DrawWarps(const PtxCase& ptx_case, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<Warp> warps(kWarps);
  for (Warp& warp : warps)
    for (Operands& operands : warp.lanes) ptx_case.draw(random, operands);
  return warps;
}

// Tells the first lane that is wrong; the largest distance of all.
double CompareWarp(const PtxCase& ptx_case, const Warp& warp, std::span<const Word> got,
                   bool& is_told) {
  WarpResults wanted{};
  ptx_case.model(warp, wanted);
  double most = 0;
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
    const double distance = Distance(ptx_case, got[lane], wanted[lane]);
    most = std::max(most, distance);
    if (distance <= 1 || is_told) continue;
    is_told = true;
    std::printf("  WRONG  %s\n         lane %zu, A 0x%llx B 0x%llx C 0x%llx: %s instead of %s\n",
                ptx_case.text.c_str(), lane, static_cast<unsigned long long>(warp.lanes[lane][0]),
                static_cast<unsigned long long>(warp.lanes[lane][1]),
                static_cast<unsigned long long>(warp.lanes[lane][2]),
                Describe(ptx_case, got[lane]).c_str(), Describe(ptx_case, wanted[lane]).c_str());
  }
  return most;
}

void RunCase(Gpu& gpu, const Buffers& buffers, const PtxCase& ptx_case, const Options& options,
             Tally& tally) {
  ++tally.cases;
  const std::vector<Warp> warps = DrawWarps(ptx_case, options.seed);
  std::vector<Word> results(kThreads);
  gpu.Upload(buffers.operands, std::as_bytes(std::span(warps)));
  gpu.Clear(buffers.results, kThreads * sizeof(Word));
  gpu.Clear(buffers.scratch, kThreads * kScratchBytes);
  const std::string failure = gpu.Run(KernelText(ptx_case), "conformance", kBlocks, kBlockThreads,
                                      {buffers.operands, buffers.results, buffers.scratch});
  if (!failure.empty()) {
    ++tally.failed;
    std::printf("  FAILED %s\n         %s\n", ptx_case.text.c_str(), failure.c_str());
    return;
  }
  gpu.Download(std::as_writable_bytes(std::span(results)), buffers.results);
  bool is_told = false;
  for (std::size_t warp = 0; warp < kWarps; ++warp) {
    const auto got = std::span(results).subspan(warp * kWarpLanes, kWarpLanes);
    tally.most = std::max(tally.most, CompareWarp(ptx_case, warps[warp], got, is_told));
  }
  if (is_told) ++tally.failed;
}

int Report(const std::map<std::string, Tally>& families) {
  Tally all;
  std::printf("\n%-18s %6s %7s  %s\n", "family", "cases", "failed",
              "largest error of what is allowed");
  for (const auto& [family, tally] : families) {
    all.cases += tally.cases;
    all.failed += tally.failed;
    std::printf("%-18s %6d %7d  ", family.c_str(), tally.cases, tally.failed);
    if (tally.most == 0)
      std::printf("exact\n");
    else
      std::printf("%.0f%%\n", 100 * tally.most);
  }
  std::printf("%-18s %6d %7d  of %zu families, %zu threads each\n", "all", all.cases, all.failed,
              families.size(), kThreads);
  return all.failed == 0 && all.cases > 0 ? 0 : 1;
}

int Run(const Options& options) {
  std::string error;
  const std::unique_ptr<Gpu> gpu = Gpu::Open(options.library, error);
  if (!gpu) {
    std::fprintf(stderr, "ptx_conformance: %s\n", error.c_str());
    return 2;
  }
  std::printf("%s\n", gpu->Name().c_str());
  const Buffers buffers(*gpu);
  std::map<std::string, Tally> families;
  for (const PtxCase& ptx_case : AllCases()) {
    if (ptx_case.text.find(options.only) == std::string::npos) continue;
    RunCase(*gpu, buffers, ptx_case, options, families[ptx_case.family]);
  }
  return Report(families);
}

int PrintPtx(const Options& options) {
  for (const PtxCase& ptx_case : AllCases()) {
    if (ptx_case.text.find(options.only) != std::string::npos)
      std::printf("%s\n", KernelText(ptx_case).c_str());
  }
  return 0;
}

constexpr const char* kDescription =
    "Runs every family of PTX instructions on a GPU, real or emulated, and compares what they "
    "give\n"
    "with an independent model: bit for bit, or within the error that PTX ISA documents.\n"
    "Exit status: 0, all is right; 1, something is not; 2, there is no GPU, or wrong usage.";

int Main(int argc, char** argv) {
  Options options;
  CLI::App app(kDescription, "ptx_conformance");
  app.add_option("--library", options.library, "the CUDA driver to open")->capture_default_str();
  app.add_option("--only", options.only, "only cases whose PTX contains this");
  app.add_option("--seed", options.seed, "of the operands")->capture_default_str();
  app.add_flag("--print-ptx", options.prints_ptx, "print the modules instead of running them");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return options.prints_ptx ? PrintPtx(options) : Run(options);
}

}  // namespace
}  // namespace torpor::conformance

int main(int argc, char** argv) {
  try {
    return torpor::conformance::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ptx_conformance: %s\n", error.what());
    return 2;
  }
}

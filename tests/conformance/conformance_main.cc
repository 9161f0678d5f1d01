// ptx_conformance: every family of PTX instructions against an independent model, on whichever GPU
// a driver library gives: the emulator's, or a real one; as PTX, or as the machine code that ptxas
// makes of it.
#include <CLI/CLI.hpp>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <future>
#include <map>
#include <thread>
#include <vector>

#include "tests/conformance/assembler.h"
#include "tests/conformance/comparison.h"
#include "tests/conformance/gpu.h"
#include "tests/conformance/kernel_text.h"
#include "tests/conformance/machine_code_gaps.h"
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
  std::string machine_code;  // the architecture; empty: PTX
  std::string ptxas = "ptxas";
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

// What became of one case.
struct Outcome {
  std::string failure;  // empty: it is right
  double most = 0;      // of Distance, where there is a tolerance
};

// What became of the cases of one family.
struct Tally {
  int cases = 0;
  int failed = 0;
  int gaps = 0;     // known ones, which failed as they should
  int refused = 0;  // by the assembler, so not run
  double most = 0;  // of all outcomes
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

std::string DescribeLane(const PtxCase& ptx_case, std::size_t lane, const Operands& operands,
                         Word got, Word wanted) {
  std::array<char, 160> place;
  std::snprintf(place.data(), place.size(), "lane %zu, A 0x%llx B 0x%llx C 0x%llx: ", lane,
                static_cast<unsigned long long>(operands[0]),
                static_cast<unsigned long long>(operands[1]),
                static_cast<unsigned long long>(operands[2]));
  return place.data() + Describe(ptx_case, got) + " instead of " + Describe(ptx_case, wanted);
}

// The first lane that is wrong is the outcome's.
void CompareWarp(const PtxCase& ptx_case, const Warp& warp, std::span<const Word> got,
                 Outcome& outcome) {
  WarpResults wanted{};
  ptx_case.model(warp, wanted);
  for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
    const double distance = Distance(ptx_case, got[lane], wanted[lane]);
    outcome.most = std::max(outcome.most, distance);
    if (distance > 1 && outcome.failure.empty())
      outcome.failure = DescribeLane(ptx_case, lane, warp.lanes[lane], got[lane], wanted[lane]);
  }
}

// `image` is the case's kernel, as PTX or machine code.
Outcome RunCase(Gpu& gpu, const Buffers& buffers, const PtxCase& ptx_case, const std::string& image,
                unsigned seed) {
  const std::vector<Warp> warps = DrawWarps(ptx_case, seed);
  std::vector<Word> results(kThreads);
  gpu.Upload(buffers.operands, std::as_bytes(std::span(warps)));
  gpu.Clear(buffers.results, kThreads * sizeof(Word));
  gpu.Clear(buffers.scratch, kThreads * kScratchBytes);
  Outcome outcome;
  outcome.failure = gpu.Run(image, "conformance", kBlocks, kBlockThreads,
                            {buffers.operands, buffers.results, buffers.scratch});
  if (!outcome.failure.empty()) return outcome;
  gpu.Download(std::as_writable_bytes(std::span(results)), buffers.results);
  for (std::size_t warp = 0; warp < kWarps; ++warp)
    CompareWarp(ptx_case, warps[warp], std::span(results).subspan(warp * kWarpLanes, kWarpLanes),
                outcome);
  return outcome;
}

void Count(const PtxCase& ptx_case, Outcome outcome, const std::string& gap, Tally& tally) {
  ++tally.cases;
  if (gap.empty()) tally.most = std::max(tally.most, outcome.most);
  if (!gap.empty() && !outcome.failure.empty()) {
    ++tally.gaps;
    return;
  }
  if (!gap.empty()) outcome.failure = "is right, but known as a gap: " + gap;
  if (outcome.failure.empty()) return;
  ++tally.failed;
  std::printf("  FAILED %s\n         %s\n", ptx_case.text.c_str(), outcome.failure.c_str());
}

// The cases' kernels as machine code, made by several processes at a time.
std::vector<MachineCode> AssembleAll(const std::vector<PtxCase>& cases, const Options& options) {
  Assembler assembler(options.ptxas, options.machine_code);
  std::vector<MachineCode> codes(cases.size());
  std::atomic<std::size_t> next = 0;
  const auto assemble_some = [&] {
    for (std::size_t i = next++; i < cases.size(); i = next++)
      codes[i] = assembler.Assemble(KernelText(cases[i], options.machine_code));
  };
  std::vector<std::future<void>> workers(std::max(1U, std::thread::hardware_concurrency()));
  for (auto& worker : workers) worker = std::async(std::launch::async, assemble_some);
  for (auto& worker : workers) worker.get();
  return codes;
}

int Report(const std::map<std::string, Tally>& families) {
  Tally all;
  std::printf("\n%-18s %6s %7s  %s\n", "family", "cases", "failed",
              "largest error of what is allowed");
  for (const auto& [family, tally] : families) {
    all.cases += tally.cases;
    all.failed += tally.failed;
    all.gaps += tally.gaps;
    all.refused += tally.refused;
    if (tally.cases == 0) continue;
    std::printf("%-18s %6d %7d  ", family.c_str(), tally.cases, tally.failed);
    if (tally.gaps > 0) std::printf("%d known gaps, else ", tally.gaps);
    if (tally.most == 0)
      std::printf("exact\n");
    else
      std::printf("%.0f%%\n", 100 * tally.most);
  }
  std::printf("%-18s %6d %7d  of %zu families, %zu threads each\n", "all", all.cases, all.failed,
              families.size(), kThreads);
  if (all.gaps > 0) std::printf("%d cases are known gaps.\n", all.gaps);
  if (all.refused > 0) std::printf("%d cases are not for that architecture.\n", all.refused);
  return all.failed == 0 && all.cases > 0 ? 0 : 1;
}

std::vector<PtxCase> ChosenCases(const Options& options) {
  std::vector<PtxCase> cases = AllCases();
  std::erase_if(cases, [&](const PtxCase& ptx_case) {
    return ptx_case.text.find(options.only) == std::string::npos;
  });
  return cases;
}

void RunPtx(Gpu& gpu, const Buffers& buffers, const Options& options,
            std::map<std::string, Tally>& families) {
  for (const PtxCase& ptx_case : ChosenCases(options)) {
    Outcome outcome = RunCase(gpu, buffers, ptx_case, KernelText(ptx_case), options.seed);
    Count(ptx_case, std::move(outcome), {}, families[ptx_case.family]);
  }
}

void RunMachineCode(Gpu& gpu, const Buffers& buffers, const Options& options,
                    std::map<std::string, Tally>& families) {
  const std::vector<PtxCase> cases = ChosenCases(options);
  const std::vector<MachineCode> codes = AssembleAll(cases, options);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    Tally& tally = families[cases[i].family];
    if (codes[i].IsForAnotherArchitecture()) {
      ++tally.refused;
      continue;
    }
    if (codes[i].image.empty()) {
      Count(cases[i], {"ptxas: " + codes[i].refusal}, {}, tally);
      continue;
    }
    Outcome outcome = RunCase(gpu, buffers, cases[i], codes[i].image, options.seed);
    Count(cases[i], std::move(outcome), MachineCodeGap(cases[i]), tally);
  }
  if (!options.only.empty()) return;
  for (const std::string& gap : UnusedMachineCodeGaps(cases)) {
    ++families["known gaps"].failed;
    std::printf("  FAILED %s\n         is known as a gap, but of no case\n", gap.c_str());
  }
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
  if (options.machine_code.empty())
    RunPtx(*gpu, buffers, options, families);
  else
    RunMachineCode(*gpu, buffers, options, families);
  return Report(families);
}

int PrintPtx(const Options& options) {
  for (const PtxCase& ptx_case : ChosenCases(options)) {
    std::printf("%s\n", options.machine_code.empty()
                            ? KernelText(ptx_case).c_str()
                            : KernelText(ptx_case, options.machine_code).c_str());
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
  app.add_option("--machine-code", options.machine_code,
                 "run machine code of this architecture, for example sm_75");
  app.add_option("--ptxas", options.ptxas, "the assembler that makes it")->capture_default_str();
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

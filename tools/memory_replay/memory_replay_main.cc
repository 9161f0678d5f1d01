// torpor-memory-replay: replays a trace of allocations over every allocator of GPU memory.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/nearest_rank.h"
#include "base/write_file.h"
#include "memory/tiered_placement.h"
#include "memory/trace/model_trace.h"
#include "memory/trace/replay.h"
#include "memory/trace/single_pool.h"
#include "tools/text_table/text_table.h"

namespace torpor::memory {
namespace {

constexpr const char* kDescription =
    R"(Replays a trace of allocations over every allocator of GPU memory and compares them.

No GPU is needed: allocators are bookkeeping. Where a block gets no place, the function whose last
request is longest ago is evicted; how often that happens beyond the trace's own evictions tells
what fragmentation costs. docs/memory.md describes the format of traces and the allocators.)";

constexpr const char* kFooter = R"(
EXIT STATUS
  0  replayed
  2  the command line or the trace is wrong

EXAMPLES
  torpor-memory-replay --functions 160 --requests 4000 --gpu-gib 30
  torpor-memory-replay --write models.trace
  torpor-memory-replay models.trace --headroom-percent 0)";

// Values of the command line.
struct Options {
  std::string trace_file;
  std::string write_file;
  ModelTraceOptions models;
  double gpu_gib = 30;
  double headroom_percent = 10;
  std::uint64_t idle_mib = 256;
};

// CLI11's ranges accept "nan".
const CLI::Validator& FiniteNumber() {
  static const auto* const validator = new CLI::Validator(
      [](std::string& text) {
        return std::isfinite(std::strtod(text.c_str(), nullptr)) ? std::string()
                                                                 : text + " is not a finite number";
      },
      "");
  return *validator;
}

void AddOptions(Options* options, CLI::App* app) {
  app->footer(kFooter);
  app->add_option("trace", options->trace_file, "The trace; made by the options below if left out")
      ->type_name("FILE");
  app->add_option("--write", options->write_file, "Write the trace there and replay nothing")
      ->type_name("FILE");
  app->add_option("--functions", options->models.functions, "Functions, of the paper's 8 models")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  app->add_option("--requests", options->models.requests, "Requests")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000000));
  app->add_option("--seed", options->models.seed, "Which of many such traces")
      ->capture_default_str();
  app->add_option("--gpu-gib", options->gpu_gib, "What all models together may occupy")
      ->capture_default_str()
      ->check(CLI::Range(0.125, 1024.0))
      ->check(FiniteNumber());
  app->add_option("--headroom-percent", options->headroom_percent,
                  "How much larger than that the GPU's memory is")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 100.0))
      ->check(FiniteNumber());
  app->add_option("--idle-mib", options->idle_mib,
                  "Most that is moved at each idle moment; 0: never")
      ->capture_default_str()
      ->check(CLI::Range(0, 1 << 24));
}

// An allocator to compare. `consolidates`: blocks are moved at idle moments.
struct Contender {
  const char* name;
  std::unique_ptr<Placement> (*make)(Bytes arena_bytes);
  bool consolidates;
};

std::unique_ptr<Placement> MakeTiers(Bytes arena_bytes) {
  return std::make_unique<TieredPlacement>(arena_bytes, PartitionSizes{});
}
std::unique_ptr<Placement> MakeBuddies(Bytes arena_bytes) {
  PartitionSizes sizes;
  sizes.fixed_sizes.clear();
  return std::make_unique<TieredPlacement>(arena_bytes, sizes);
}
std::unique_ptr<Placement> MakePool(Bytes arena_bytes) {
  return std::make_unique<SinglePool>(std::make_unique<ArenaSource>(arena_bytes));
}

constexpr Contender kContenders[] = {{"two tiers", MakeTiers, true},
                                     {"two tiers, no moves", MakeTiers, false},
                                     {"buddies only", MakeBuddies, true},
                                     {"single pool", MakePool, false}};

std::uint64_t NowNs() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

// Returns a nearest-rank percentile (`rank` from 0 to 1); "-" without values.
std::string Percentile(const std::vector<std::uint64_t>& ascending, double rank) {
  if (ascending.empty()) return "-";
  return absl::StrCat(ascending[NearestRank(ascending.size(), rank)]);
}

// Returns the cells of a contender's row; times in nanoseconds.
std::vector<std::string> Row(const Contender& contender, ReplayReport report) {
  std::sort(report.allocation_ns.begin(), report.allocation_ns.end());
  return {contender.name,
          absl::StrCat(report.allocation_ns.size()),
          Percentile(report.allocation_ns, 0.5),
          Percentile(report.allocation_ns, 0.99),
          Percentile(report.allocation_ns, 0.999),
          absl::StrCat(report.forced_evictions),
          absl::StrCat(report.failures),
          absl::StrFormat("%.1f%%", 100 * report.mean_fragmented_share),
          absl::StrFormat("%.1f%%", 100 * report.max_fragmented_share),
          absl::StrCat(report.moves),
          absl::StrFormat("%.1f", static_cast<double>(report.moved_bytes) / double{kGiB})};
}

// Replays the trace over each allocator, with the same arena size, and prints the table.
void Compare(const AllocationTrace& trace, const Options& options) {
  using Align = TextTable::Align;
  TextTable table({{"ALLOCATOR", Align::kLeft},
                   {"BLOCKS", Align::kRight},
                   {"P50 NS", Align::kRight},
                   {"P99 NS", Align::kRight},
                   {"P99.9 NS", Align::kRight},
                   {"FORCED EVICTIONS", Align::kRight},
                   {"FAILED", Align::kRight},
                   {"FRAGMENTED", Align::kRight},
                   {"AT MOST", Align::kRight},
                   {"MOVES", Align::kRight},
                   {"GIB MOVED", Align::kRight}});
  const auto arena_bytes =
      static_cast<Bytes>(options.gpu_gib * double{kGiB} * (1 + options.headroom_percent / 100));
  for (const Contender& contender : kContenders) {
    ArenaAllocator arena(contender.make(arena_bytes));
    ArenaTarget target(arena);
    ReplayOptions replay;
    replay.now_ns = NowNs;
    replay.idle_move_bytes = contender.consolidates ? options.idle_mib * kMiB : 0;
    table.AddRow(Row(contender, ReplayTrace(trace, target, replay)));
  }
  std::fputs(table.Render().c_str(), stdout);
}

absl::StatusOr<AllocationTrace> ReadTrace(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  return ParseTrace(std::string(std::istreambuf_iterator<char>(file), {}), path);
}

// Replays or writes the trace. Returns the exit status.
int Run(Options options) {
  options.models.gpu_bytes = static_cast<Bytes>(options.gpu_gib * double{kGiB});
  const absl::StatusOr<AllocationTrace> trace =
      options.trace_file.empty() ? MakeModelTrace(options.models) : ReadTrace(options.trace_file);
  if (!trace.ok()) {
    std::fprintf(stderr, "torpor-memory-replay: %s\n",
                 std::string(trace.status().message()).c_str());
    return 2;
  }
  if (options.write_file.empty()) {
    Compare(*trace, options);
    return 0;
  }
  const absl::Status written = WriteFile(options.write_file, FormatTrace(*trace));
  if (written.ok()) return 0;
  std::fprintf(stderr, "torpor-memory-replay: %s\n", std::string(written.message()).c_str());
  return 2;
}

int Main(int argc, char** argv) {
  CLI::App app(kDescription);
  Options options;
  AddOptions(&options, &app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return Run(std::move(options));
}

}  // namespace
}  // namespace torpor::memory

int main(int argc, char** argv) {
  try {
    return torpor::memory::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "torpor-memory-replay: %s\n", error.what());
    return 2;
  }
}

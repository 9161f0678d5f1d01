// torpor-sim: simulates GPU nodes under the real scheduler.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "base/write_file.h"
#include "scheduler/replay.h"
#include "server/config/settings.h"
#include "tools/sim/figures/case_runner.h"
#include "tools/sim/figures/figure_list.h"
#include "tools/sim/figures/figure_plot.h"
#include "tools/sim/figures/figure_report.h"
#include "tools/sim/figures/free_run.h"
#include "tools/workload/rate_file.h"

namespace torpor::sim {
namespace {

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;
// Of the rates that are made where no file is given: as many rows as the paper's trace has.
constexpr std::size_t kTraceRows = 203;

constexpr const char* kDescription =
    R"(Simulates nodes of GPUs under Torpor's own scheduler.

The scheduler is the very code of the daemon; GPUs, links and requests are simulated. A seed gives
the same run on every machine, whatever the number of threads. What models take is in one file of
profiles, the same for every figure.)";

constexpr const char* kFooter = R"(
SYSTEMS
  torpor       the paper's policies
  torpor-plus  ours (docs/scheduling.md)
  fifo         torpor, first come first served
  lru          torpor, evicting the least recently used
  block        torpor, with released blocks cached in a single pool
  random       torpor, on a random idle GPU and without links between GPUs
  simple-swap  fifo, lru and random together
  native       containers of their own, each bound to a GPU for ever
  keep-alive   containers that start cold and end after p99 of their function's gaps (INFless-KA)
  non-swap     bound to a GPU like native, but remote: with smaller footprints
  bound        no system, but what none can exceed (figure 11 only)

  "torpor-plus without PART" has one part of torpor-plus as torpor has it: queue, late-aside,
  beyond-rescue, placement or eviction.

EXIT STATUS
  0  simulated; replayed to the same decisions
  1  a file cannot be written, or the plot not drawn; another decision than in the log
  2  the command line, or a file that it names, is wrong

EXAMPLES
  torpor-sim figure 11 --rates rates.csv --seeds 5
  torpor-sim figure 10 --rates rates.csv --functions 160 --arrivals poisson --json
  torpor-sim figure parts --functions 640
  torpor-sim table 3
  torpor-sim run --topology nvswitch-8gpu --systems torpor,lru --functions 1000 --rate-factors 1.2
  torpor-sim replay /var/log/torpor/events.log

FILES
  docs/simulator.md describes profiles, docs/emulator.md topologies, docs/loadgen.md rates.)";

// Values of the command line; empty texts and lists stand for defaults.
struct Options {
  std::string figure;  // or table
  std::string rates_file;
  std::string profiles_file;
  std::string topology;
  std::string arrivals = "both";
  std::vector<std::size_t> functions;
  std::vector<std::string> systems;
  std::vector<double> rate_factors;
  scheduler::PolicyConstants constants;
  std::uint64_t seeds = 1;
  std::uint64_t first_seed = 1;
  unsigned threads = 0;
  bool json = false;
  bool quiet = false;
  std::string event_log;
  std::string csv_file;
  std::string plot_file;
  FreeRunOptions free_run;
};

const std::vector<std::string>& SystemNames() {
  static const auto* const names = [] {
    auto* const list = new std::vector<std::string>;
    for (const System& system : Systems()) list->push_back(system.name);  // NOLINT
    list->push_back(kBound);
    return list;
  }();
  return *names;
}

// Adds the options shared by `figure`, `table` and `run`. `options` must outlive `command`.
void AddOptions(Options* options, CLI::App* command) {
  command
      ->add_option("--rates", options->rates_file,
                   "Requests a minute, a row a function (CSV); of the functions each gets a row "
                   "drawn at random (default: made up like the paper's trace)")
      ->type_name("FILE");
  command
      ->add_option("--profiles", options->profiles_file,
                   "What models take (default: as measured by the paper)")
      ->type_name("FILE");
  command
      ->add_option("--topology", options->topology,
                   "The node: a file, or paper-4gpu, paper-1gpu, nvswitch-8gpu, unlinked-2gpu")
      ->type_name("FILE");
  command->add_option("--arrivals", options->arrivals, "artifact, poisson or both")
      ->capture_default_str()
      ->check(CLI::IsMember({"artifact", "poisson", "both"}));
  command->add_option("--functions", options->functions, "Numbers of functions, for a row each")
      ->delimiter(',')
      ->type_name("LIST")
      ->check(CLI::Range(1, 10'000'000));
  command->add_option("--systems", options->systems, "Which systems, see below")
      ->delimiter(',')
      ->type_name("LIST")
      ->check(CLI::IsMember(SystemNames()));
  command
      ->add_option("--rate-factors", options->rate_factors,
                   "What rates are multiplied by, for a row each (figures 14 and 16, run)")
      ->delimiter(',')
      ->type_name("LIST")
      ->check(CLI::Range(0.0, 1e6));
  for (const auto& setting : server::PolicySettings()) {
    command
        ->add_option_function<std::string>(
            server::FlagName(setting.key),
            [options, &setting](const std::string& text) {
              const absl::Status status = setting.set(options->constants, text);
              if (!status.ok()) {
                throw CLI::ValidationError(std::string(setting.key), std::string(status.message()));
              }
            },
            std::string(setting.help))
        ->type_name(setting.value_name)
        ->default_str(setting.DefaultText());
  }
  command->add_option("--seeds", options->seeds, "Simulate seeds 1 to N; rows are means")
      ->capture_default_str()
      ->type_name("N")
      ->check(CLI::Range(1, 100'000));
  command->add_option("--first-seed", options->first_seed, "Begin with another seed than 1")
      ->capture_default_str();
  command->add_option("--threads", options->threads, "Threads (default: one a core)")
      ->type_name("N")
      ->check(CLI::Range(1, 1024));
  command->add_flag("--json", options->json, "Print one JSON object and nothing else");
  command->add_option("--csv", options->csv_file, "Write the rows there, too")->type_name("FILE");
  command
      ->add_option("--plot", options->plot_file,
                   "Draw the figure there, too (with python3 and gnuplot)")
      ->type_name("FILE.svg");
  command->add_flag("--quiet", options->quiet, "No progress on stderr");
}

// Adds the options of `run`. `options` must outlive `command`.
void AddFreeRunOptions(FreeRunOptions* options, CLI::App* command) {
  command->add_option("--models", options->models, "Models that functions have in turn (all)")
      ->delimiter(',')
      ->type_name("LIST");
  command->add_option("--minutes", options->minutes, "Length of the load")
      ->capture_default_str()
      ->check(CLI::Range(0.01, 1e6));
  command->add_option("--nodes", options->nodes, "Nodes behind the load balancer")
      ->capture_default_str()
      ->check(CLI::Range(1, 10'000));
  command
      ->add_option("--routing", options->routing,
                   "function: each on one node; least: to the node with the fewest requests")
      ->capture_default_str()
      ->check(CLI::IsMember({"function", "least"}));
}

// A line rewritten in place; for terminals only.
void PrintProgress(std::size_t done, std::size_t all) {
  std::fprintf(stderr, "\r%zu of %zu simulations%s", done, all, done == all ? "\r\x1b[K" : "");
}

// Reads the files named on the command line. The result refers to `profiles`, which must outlive
// the figure.
absl::StatusOr<FigureOptions> ReadFiles(const Options& options, const Profiles& profiles) {
  FigureOptions figure;
  figure.profiles = &profiles;
  figure.functions = options.functions;
  figure.systems = options.systems;
  figure.rate_factors = options.rate_factors;
  figure.constants = options.constants;
  figure.rates = workload::TraceLikeRates(kTraceRows, 1);
  if (!options.rates_file.empty()) {
    TORPOR_ASSIGN_OR_RETURN(figure.rates, workload::ReadRates(options.rates_file));
  }
  if (!options.topology.empty()) {
    TORPOR_ASSIGN_OR_RETURN(figure.node, ReadNodeModel(options.topology, profiles.reserved));
  }
  if (options.arrivals != "both") {
    figure.arrivals = {*workload::ParseArrivalProcess(options.arrivals)};
  }
  return figure;
}

// Returns the figure for `command`: "run", "table" or "figure".
absl::StatusOr<Figure> MakeFigure(const Options& options, const FigureOptions& figure,
                                  const std::string& command) {
  if (command == "run") return MakeFreeRun(figure, options.free_run);
  if (command == "table") return TableNamed(options.figure, figure);
  return FigureNamed(options.figure, figure);
}

// Figures name their systems; a free run takes systems without special needs.
absl::Status CheckAllKnown(const Options& options, const Profiles& profiles,
                           const std::string& command) {
  for (const System& system : Systems()) {
    const auto& asked = options.systems;
    const bool is_simulated =
        asked.empty() ? command != "run"
                      : std::find(asked.begin(), asked.end(), system.name) != asked.end();
    if (is_simulated) TORPOR_RETURN_IF_ERROR(CheckKnown(system, profiles));
  }
  return absl::OkStatus();
}

// Simulates the cases of a figure, table or free run, writes the files asked for and prints the
// result. Returns the exit status; Unavailable if a file cannot be written or drawn.
absl::StatusOr<int> Run(const Options& options, const std::string& command) {
  Profiles profiles = PaperProfiles();
  if (!options.profiles_file.empty()) {
    TORPOR_ASSIGN_OR_RETURN(profiles, ReadProfiles(options.profiles_file));
  }
  TORPOR_RETURN_IF_ERROR(CheckAllKnown(options, profiles, command));
  TORPOR_ASSIGN_OR_RETURN(const FigureOptions figure_options, ReadFiles(options, profiles));
  TORPOR_ASSIGN_OR_RETURN(const Figure figure, MakeFigure(options, figure_options, command));
  CaseRun run;
  run.first_seed = options.first_seed;
  run.seeds = options.seeds;
  run.threads = options.threads > 0 ? options.threads : std::thread::hardware_concurrency();
  if (!options.quiet && isatty(STDERR_FILENO) != 0) run.progress = PrintProgress;
  const std::vector<Json> rows = RunCases(figure.cases, run);
  if (!options.csv_file.empty()) {
    TORPOR_RETURN_IF_ERROR(WriteFile(options.csv_file, FigureCsv(rows)));
  }
  if (!options.plot_file.empty()) {
    TORPOR_RETURN_IF_ERROR(DrawFigure(figure, rows, options.plot_file));
  }
  std::fputs((options.json ? FigureJson(figure, rows) : FigureText(figure, rows)).c_str(), stdout);
  return 0;
}

// Prints the first line where the log and the replay differ.
void PrintDifference(const scheduler::ReplayOutcome::Difference& difference) {
  std::printf("line %llu differs\n  logged:  %s\n  decided: %s\n",
              static_cast<unsigned long long>(difference.line),
              difference.logged.empty() ? "nothing" : difference.logged.c_str(),
              difference.decided.empty() ? "nothing" : difference.decided.c_str());
}

// A scheduler of the log's policy is told what the log's was.
int Replay(const std::string& path) {
  std::ifstream log(path);
  if (!log) {
    std::fprintf(stderr, "torpor-sim: %s: cannot be read\n", path.c_str());
    return kExitUsage;
  }
  const scheduler::ReplayOutcome outcome = scheduler::Replay(log);
  std::printf("%llu events, %llu decisions as logged\n",
              static_cast<unsigned long long>(outcome.events),
              static_cast<unsigned long long>(outcome.actions));
  if (outcome.difference) PrintDifference(*outcome.difference);
  if (!outcome.error.empty()) {
    std::fprintf(stderr, "torpor-sim: %s: %s\n", path.c_str(), outcome.error.c_str());
  }
  return outcome.is_same() ? 0 : kExitFailure;
}

// Parses the command line and returns the exit status.
int Main(int argc, char** argv) {
  Options options;
  CLI::App app(kDescription, "torpor-sim");
  app.footer(kFooter);
  app.require_subcommand(1);
  CLI::App* const figure = app.add_subcommand(
      "figure", "Reproduces a figure of the Torpor paper, or shows what parts torpor-plus has");
  figure->add_option("figure", options.figure, FigureNames())->required();
  CLI::App* const table = app.add_subcommand("table", "Reproduces a table of the Torpor paper");
  table->add_option("table", options.figure, "3")->required();
  CLI::App* const run = app.add_subcommand("run", "Simulates whatever is asked for");
  AddFreeRunOptions(&options.free_run, run);
  for (CLI::App* const command : {figure, table, run}) AddOptions(&options, command);
  CLI::App* const replay = app.add_subcommand(
      "replay", "Tells a scheduler what torpord's was told, and compares its decisions");
  replay->add_option("log", options.event_log, "An event log (docs/event-log.md)")
      ->type_name("FILE")
      ->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  if (replay->parsed()) return Replay(options.event_log);
  const auto status = Run(options, app.get_subcommands().front()->get_name());
  if (status.ok()) return *status;
  std::fprintf(stderr, "torpor-sim: %s\n", std::string(status.status().message()).c_str());
  return absl::IsUnavailable(status.status()) ? kExitFailure : kExitUsage;
}

}  // namespace
}  // namespace torpor::sim

int main(int argc, char** argv) {
  try {
    return torpor::sim::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "torpor-sim: %s\n", error.what());
    return 2;
  }
}

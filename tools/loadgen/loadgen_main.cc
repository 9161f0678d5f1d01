// torpor-loadgen: an open-loop load generator that checks every answer.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <string>

#include "tools/loadgen/load_run.h"
#include "tools/loadgen/workload.h"

namespace torpor::loadgen {
namespace {

constexpr const char* kDescription =
    R"(Sends inference requests to functions at given rates and checks every answer.

The load is an open loop: each request has an absolute intended time, drawn in advance from the
arrival process and the seed, and is sent then whatever has become of the others. Latencies count
from the intended time, so that waiting behind a slow server is never left out.)";

constexpr const char* kFooter = R"(
WORKLOAD FILE (in brackets: what holds where it is left out)
  version: v1
  target: 127.0.0.1:8000         # host:port of the router, for functions without a url
  arrivals: poisson              # constant, poisson or artifact [poisson]
  seed: 1                        # [1]
  duration_s: 30                 # measured [30]
  warm_up_s: 5                   # before it; answers are checked, times not counted [0]
  timeout_s: 30                  # from the intended time [30]
  functions:
    - name: digits-0
      path: /function/digits-0/predict   # [/function/NAME/]
      rate_per_s: 2.5                    # [1]
      objective_ms: 200                  # [1000]
      expected: digits.jsonl     # {"request":..., "expected":..., "tolerance":...} a line
    - name: other
      url: http://127.0.0.1:9000/infer
      rate_per_s: 1
      body: '{"x":[1,2]}'        # any answer with status 2xx is right

ARRIVALS
  constant  a function's requests at equal gaps, from a random phase
  poisson   exponential gaps, every function for itself
  artifact  as the published artifact of Torpor: gaps of whole milliseconds over all functions,
            drawn from a Poisson distribution; far less bursty than poisson

EXIT STATUS
  0  every request was answered, and rightly
  1  there were errors (HTTP errors, lost connections, time-outs) or wrong answers
  2  the command line or the workload file is wrong
  3  the generator itself was later than --max-lag-ms: the figures do not count

EXAMPLES
  torpor-loadgen workload.yaml --json report.json
  torpor-loadgen workload.yaml --target 10.0.0.7:8000 --rate-factor 2 --duration-s 60)";

// Beyond this many the failures are counted but not told.
constexpr int kFailuresTold = 20;

struct Options {
  std::string workload_file;
  std::string target;
  std::string arrivals;
  std::string json_file;
  std::optional<double> duration_s;
  std::optional<double> warm_up_s;
  std::optional<std::uint64_t> seed;
  double rate_factor = 1;
  double max_lag_ms = 0;
  bool quiet = false;
};

void AddOptions(Options* options, CLI::App* app) {
  app->footer(kFooter);
  app->add_option("workload", options->workload_file, "The workload file (YAML, see below)")
      ->type_name("FILE")
      ->required();
  app->add_option("--target", options->target, "Address of the router; replaces the file's")
      ->type_name("HOST:PORT");
  app->add_option("--arrivals", options->arrivals, "Arrival process; replaces the file's")
      ->check(CLI::IsMember({"constant", "poisson", "artifact"}));
  app->add_option("--duration-s", options->duration_s, "Measured seconds; replaces the file's")
      ->check(CLI::PositiveNumber);
  app->add_option("--warm-up-s", options->warm_up_s, "Seconds before them; replaces the file's")
      ->check(CLI::NonNegativeNumber);
  app->add_option("--seed", options->seed, "Of the arrivals; replaces the file's");
  app->add_option("--rate-factor", options->rate_factor,
                  "Multiplies every function's rate (default 1)")
      ->check(CLI::PositiveNumber);
  app->add_option("--json", options->json_file, "Where to write the report as JSON")
      ->type_name("FILE");
  app->add_option("--max-lag-ms", options->max_lag_ms,
                  "Fail if the p99 of the generator's own lateness is over this (0: never)")
      ->check(CLI::NonNegativeNumber);
  app->add_flag("--quiet", options->quiet, "No progress line");
}

Duration Seconds(double seconds) { return Duration(static_cast<std::int64_t>(seconds * 1e9)); }

void Apply(const Options& options, Workload* workload) {
  if (!options.arrivals.empty()) workload->arrivals = *ParseArrivalProcess(options.arrivals);
  if (options.duration_s) workload->duration = Seconds(*options.duration_s);
  if (options.warm_up_s) workload->warm_up = Seconds(*options.warm_up_s);
  if (options.seed) workload->seed = *options.seed;
  for (FunctionLoad& function : workload->functions) function.rate_per_s *= options.rate_factor;
}

// One line that is rewritten on a terminal, a line every five seconds elsewhere.
void PrintProgress(const Progress& progress) {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  const auto seconds = static_cast<long>(ToSeconds(progress.elapsed));
  const bool last = progress.sent == progress.planned && progress.under_way == 0;
  if (!terminal && !last && seconds % 5 != 0) return;
  std::fprintf(stderr, "%s%4ld s: %zu of %zu sent, %zu under way, %zu errors, %zu wrong%s",
               terminal ? "\r\x1b[K" : "", seconds, progress.sent, progress.planned,
               progress.under_way, progress.errors, progress.wrong_answers,
               terminal && !last ? "" : "\n");
}

void PrintFailure(const std::string& failure) {
  static int told = 0;
  if (++told <= kFailuresTold) std::fprintf(stderr, "\n%s\n", failure.c_str());
  if (told == kFailuresTold) std::fprintf(stderr, "further failures are only counted\n");
}

int Finish(const Options& options, const Report& report) {
  std::fputs(ReportTable(report).c_str(), stdout);
  if (!options.json_file.empty()) {
    std::ofstream file(options.json_file);
    file << ReportJson(report);
    if (!file.flush()) {
      std::fprintf(stderr, "torpor-loadgen: cannot write %s\n", options.json_file.c_str());
      return 2;
    }
  }
  if (!report.Clean()) return 1;
  if (options.max_lag_ms > 0 && report.lag.p99_ms > options.max_lag_ms) {
    std::fprintf(stderr, "torpor-loadgen: INVALID: the generator's lag is over %.1f ms\n",
                 options.max_lag_ms);
    return 3;
  }
  return 0;
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app(kDescription, "torpor-loadgen");
  AddOptions(&options, &app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  auto workload = ReadWorkload(options.workload_file, options.target);
  if (!workload.ok()) {
    std::fprintf(stderr, "torpor-loadgen: %s\n", std::string(workload.status().message()).c_str());
    return 2;
  }
  Apply(options, &*workload);
  if (workload->duration <= Duration::zero()) {
    std::fprintf(stderr, "torpor-loadgen: the duration is not positive\n");
    return 2;
  }
  LoadObserver observer;
  if (!options.quiet) observer.on_progress = PrintProgress;
  observer.on_failure = PrintFailure;
  return Finish(options, MakeReport(*workload, RunLoad(*workload, observer)));
}

}  // namespace
}  // namespace torpor::loadgen

int main(int argc, char** argv) {
  try {
    return torpor::loadgen::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "torpor-loadgen: %s\n", error.what());
    return 2;
  }
}

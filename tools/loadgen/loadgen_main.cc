// torpor-loadgen: an open-loop load generator that checks every answer.
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/write_file.h"
#include "tools/loadgen/load_run.h"
#include "tools/loadgen/schedule.h"
#include "tools/loadgen/workload.h"
#include "tools/workload/rate_file.h"

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
  arrivals: poisson              # constant, poisson, gamma or artifact [poisson]
  cv: 2                          # of gamma: the gaps' deviation over their mean [1]
  rates: rates.csv               # requests a minute by function, see below [rate_per_s]
  seed: 1                        # of arrivals and rates [1]
  duration_s: 30                 # measured [the minutes of `rates`, else 30]
  warm_up_s: 5                   # before it; answers are checked, times not counted [0]
  timeout_s: 30                  # from the intended time [30]
  functions:
    - name: digits-0
      path: /function/digits-0/predict   # [/function/NAME/]
      rate_per_s: 2.5            # not beside a table of `rates` [1]
      objective_ms: 200          # [1000]
      percentile: 98             # of the requests that are to attain it [98]
      expected: digits.jsonl     # {"request":..., "expected":..., "tolerance":...} a line
    - name: other
      url: http://127.0.0.1:9000/infer
      rate_per_s: 1
      body: '{"x":[1,2]}'        # any answer with status 2xx is right

ARRIVALS
  constant  a function's requests at equal gaps, from a random phase
  poisson   exponential gaps, every function for itself
  gamma     gaps from a Gamma distribution with coefficient of variation `cv` (below 1 more even
            than poisson, above 1 burstier), every function for itself
  artifact  as the published artifact of Torpor: gaps of whole milliseconds over all functions,
            drawn from a Poisson distribution; far less bursty than poisson

RATES
  FILE         CSV: a header minute_0,minute_1,... and a row a function, its requests a minute.
               Function i of the workload has row i; if there are more functions than rows, every
               function draws a row by the seed. After the last minute comes the first again.
  trace-like   generated: 31 minutes with the means of the paper's trace, 9.79 on average
  gamma:SHAPE  every minute of every function is drawn from a Gamma distribution around its
               rate_per_s; the smaller the shape, the burstier

EXIT STATUS
  0  every request was answered, and rightly
  1  there were errors (HTTP errors, lost connections, time-outs) or wrong answers
  2  the command line, the workload file or where the report is to go is wrong
  3  the generator was later than --max-lag-ms, or gave up: the figures do not count, whether there
     were errors or not

EXAMPLES
  torpor-loadgen workload.yaml --json report.json
  torpor-loadgen workload.yaml --target 10.0.0.7:8000 --rate-factor 2 --duration-s 60
  torpor-loadgen workload.yaml --rates rates.csv --arrivals gamma --cv 2 --output report
  tools/dev/plot.py report/*.plot.json)";

// Number of failures printed; later failures are only counted.
constexpr int kFailuresTold = 20;

constexpr double kMaxSeconds = 1e9;
constexpr double kMaxMilliseconds = 1e9;

// Descriptors reserved for files.
constexpr std::size_t kOtherFiles = 32;

// Values of the command line; an absent value leaves the workload file's.
struct Options {
  std::string workload_file;
  std::string target;
  std::string arrivals;
  std::optional<double> variation;
  std::string rates;
  std::string rates_file;
  std::string json_file;
  std::string output_folder;
  std::optional<double> duration_s;
  std::optional<double> warm_up_s;
  std::optional<std::uint64_t> seed;
  double rate_factor = 1;
  double max_lag_ms = 0;
  double abort_lag_ms = 0;
  bool quiet = false;
};

// CLI11's own ranges accept text that is no number.
CLI::Validator Within(double min, double max) {
  const auto check = [min, max](const std::string& text) {
    double value = 0;
    if (CLI::detail::lexical_cast(text, value) && value >= min && value <= max) {
      return std::string();
    }
    return absl::StrFormat("%s is not a number from %g to %g", text, min, max);
  };
  return CLI::Validator(check, absl::StrFormat("[%g - %g]", min, max));
}

// `options` must outlive `app`.
void AddOptions(Options* options, CLI::App* app) {
  app->footer(kFooter);
  app->add_option("workload", options->workload_file, "The workload file (YAML, see below)")
      ->type_name("FILE")
      ->required();
  app->add_option("--target", options->target, "Address of the router; replaces the file's")
      ->type_name("HOST:PORT");
  app->add_option("--arrivals", options->arrivals, "Arrival process; replaces the file's")
      ->check(CLI::IsMember({"constant", "poisson", "gamma", "artifact"}));
  app->add_option("--cv", options->variation,
                  "Coefficient of variation of gamma arrivals; replaces the file's")
      ->check(Within(workload::kMinVariation, workload::kMaxVariation));
  app->add_option("--rates", options->rates,
                  "Where rates come from (see below); replaces the file's")
      ->type_name("FILE|trace-like|gamma:SHAPE");
  app->add_option("--duration-s", options->duration_s, "Measured seconds; replaces the file's")
      ->check(Within(0.001, kMaxSeconds));
  app->add_option("--warm-up-s", options->warm_up_s, "Seconds before them; replaces the file's")
      ->check(Within(0, kMaxSeconds));
  app->add_option("--seed", options->seed, "Of arrivals and rates; replaces the file's");
  app->add_option("--rate-factor", options->rate_factor,
                  "Multiplies every function's rate (default 1)")
      ->check(Within(1e-6, 1e6));
  app->add_option("--write-rates", options->rates_file,
                  "Write all functions' rates there, as --rates reads them, and send nothing")
      ->type_name("FILE");
  app->add_option("--json", options->json_file, "Where to write the report as JSON")
      ->type_name("FILE");
  app->add_option("--output", options->output_folder,
                  "Where to write report.json, report.csv and plots' data; made if missing")
      ->type_name("FOLDER");
  app->add_option("--max-lag-ms", options->max_lag_ms,
                  "Fail if the p99 of the generator's own lateness is over this (0: never)")
      ->check(Within(0, kMaxMilliseconds));
  app->add_option("--abort-lag-ms", options->abort_lag_ms,
                  "Give up as soon as one request would be sent later than this (0: never)")
      ->check(Within(0, kMaxMilliseconds));
  app->add_flag("--quiet", options->quiet, "No progress line");
}

// Rounds to nanoseconds.
Duration Seconds(double seconds) { return Duration(std::llround(seconds * 1e9)); }

// Replaces values of the workload by values of the command line. Returns an error for --cv
// without gamma arrivals or for an unusable --rates.
absl::Status Apply(const Options& options, Workload* workload) {
  if (!options.arrivals.empty()) {
    workload->arrivals.process = *workload::ParseArrivalProcess(options.arrivals);
  }
  if (options.variation) {
    if (workload->arrivals.process != workload::ArrivalProcess::kGamma) {
      return absl::InvalidArgumentError("--cv is for gamma arrivals only");
    }
    workload->arrivals.variation = *options.variation;
  }
  if (!options.rates.empty()) {
    TORPOR_ASSIGN_OR_RETURN(workload->rates, ParseRateSource(options.rates, ""));
  }
  if (options.duration_s) workload->duration = Seconds(*options.duration_s);
  if (options.warm_up_s) workload->warm_up = Seconds(*options.warm_up_s);
  if (options.seed) workload->seed = *options.seed;
  return absl::OkStatus();
}

// Returns the limit of connections; 0 for none.
std::size_t RaiseConnectionLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  rlimit raised = limit;
  raised.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  if (limit.rlim_cur == RLIM_INFINITY) return 0;
  return std::max<std::size_t>(limit.rlim_cur, kOtherFiles + 1) - kOtherFiles;
}

// Prints progress: a rewritten line on a terminal, a line every five seconds elsewhere.
void PrintProgress(const Progress& progress) {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  const auto seconds = static_cast<long>(ToSeconds(progress.elapsed));
  if (!terminal && !progress.is_last && seconds % 5 != 0) return;
  const std::string late =
      progress.late == 0 ? "" : absl::StrFormat(", %d sent late", progress.late);
  std::fprintf(stderr, "%s%4ld s: %zu of %zu sent, %zu under way, %zu errors, %zu wrong%s%s",
               terminal ? "\r\x1b[K" : "", seconds, progress.sent, progress.planned,
               progress.under_way, progress.errors, progress.wrong_answers, late.c_str(),
               terminal && !progress.is_last ? "" : "\n");
}

// Prints the first kFailuresTold failures. Not thread-safe: called from the thread of RunLoad.
void PrintFailure(const std::string& failure) {
  static int told = 0;
  if (++told <= kFailuresTold) std::fprintf(stderr, "\n%s\n", failure.c_str());
  if (told == kFailuresTold) std::fprintf(stderr, "further failures are only counted\n");
}

// Checks the report's folder before the load begins.
absl::Status PrepareOutput(const Options& options) {
  if (!options.json_file.empty() && !std::ofstream(options.json_file, std::ios::app)) {
    return absl::UnavailableError("--json: cannot write " + options.json_file);
  }
  if (options.output_folder.empty()) return absl::OkStatus();
  std::error_code error;
  std::filesystem::create_directories(options.output_folder, error);
  if (error) {
    return absl::UnavailableError("--output: cannot make " + options.output_folder + ": " +
                                  error.message());
  }
  if (!std::ofstream(options.output_folder + "/report.json", std::ios::app)) {
    return absl::UnavailableError("--output: cannot write in " + options.output_folder);
  }
  return absl::OkStatus();
}

// Writes the report and the plots' data into `folder`. Stops at the first error.
absl::Status WriteFolder(const std::string& folder, const Report& report,
                         const std::vector<Record>& records) {
  TORPOR_RETURN_IF_ERROR(WriteFile(folder + "/report.json", ReportJson(report)));
  TORPOR_RETURN_IF_ERROR(WriteFile(folder + "/report.csv", ReportCsv(report)));
  for (const PlotFile& plot : ReportPlots(report, records)) {
    TORPOR_RETURN_IF_ERROR(WriteFile(folder + "/" + plot.name, plot.contents));
  }
  return absl::OkStatus();
}

// Writes as many files as possible. Returns the first error.
absl::Status Write(const Options& options, const Report& report,
                   const std::vector<Record>& records) {
  absl::Status written;
  if (!options.json_file.empty()) written = WriteFile(options.json_file, ReportJson(report));
  if (!options.output_folder.empty()) {
    written.Update(WriteFolder(options.output_folder, report, records));
  }
  return written;
}

// Prints an error of the command line, the workload or the report's folder.
int Refuse(const absl::Status& status) {
  std::fprintf(stderr, "torpor-loadgen: %s\n", std::string(status.message()).c_str());
  return 2;
}

// Prints and writes the report. Returns the exit status; a lag above --max-lag-ms makes the report
// invalid.
int Finish(const Options& options, const Workload& workload, const LoadResult& result) {
  Report report = MakeReport(workload, result);
  if (report.invalid_because.empty() && options.max_lag_ms > 0 &&
      report.lag.p99_ms > options.max_lag_ms) {
    report.invalid_because =
        absl::StrFormat("the generator's lag is over %.1f ms at its p99: %.1f ms",
                        options.max_lag_ms, report.lag.p99_ms);
  }
  std::fputs(ReportTable(report).c_str(), stdout);
  const absl::Status written = Write(options, report, result.records);
  if (!written.ok()) return Refuse(written);
  if (!report.invalid_because.empty()) {
    std::fprintf(stderr, "torpor-loadgen: INVALID: %s\n", report.invalid_because.c_str());
    return 3;
  }
  return report.Clean() ? 0 : 1;
}

// Runs the load, or only writes the rates with --write-rates. Returns the exit status.
int Load(const Options& options) {
  auto workload = ReadWorkload(options.workload_file, options.target);
  if (!workload.ok()) return Refuse(workload.status());
  const absl::Status applied = Apply(options, &*workload);
  if (!applied.ok()) return Refuse(applied);
  auto rates = MakeRates(*workload);
  if (!rates.ok()) return Refuse(rates.status());
  rates->Scale(options.rate_factor);
  if (!options.rates_file.empty()) {
    const absl::Status written = WriteFile(options.rates_file, workload::FormatRates(*rates));
    return written.ok() ? 0 : Refuse(written);
  }
  if (MeasuredDuration(*workload, *rates) <= Duration::zero()) {
    return Refuse(absl::InvalidArgumentError("the duration is not positive"));
  }
  const absl::Status prepared = PrepareOutput(options);
  if (!prepared.ok()) return Refuse(prepared);
  const LoadLimits limits{.lag = Seconds(options.abort_lag_ms / 1000),
                          .connections = RaiseConnectionLimit()};
  LoadObserver observer;
  if (!options.quiet) observer.on_progress = PrintProgress;
  observer.on_failure = PrintFailure;
  return Finish(options, *workload, RunLoad(*workload, *rates, limits, observer));
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
  return Load(options);
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

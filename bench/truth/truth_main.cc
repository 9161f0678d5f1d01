// simulator_truth: the same requests on the daemon and in the simulator.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/status_macros.h"
#include "base/write_file.h"
#include "bench/truth/compared_load.h"
#include "bench/truth/findings.h"
#include "bench/truth/measured_node.h"
#include "bench/truth/node_profile.h"

namespace torpor::truth {
namespace {

constexpr const char* kDescription =
    R"(Compares torpor-sim with torpord: the example functions run on an emulated node of the paper,
slowed down; what their requests take is measured and told to the simulator; then torpor-loadgen
sends loads to the daemon, and the same requests are simulated. Prints Markdown. docs/truth.md
explains it. Wants a machine that does nothing else.)";

struct Options {
  TruthOptions truth;
  double seconds = 300;
  std::string json_file;
  std::string profile_file;
};

absl::Status WriteIfAsked(const std::string& path, const std::string& text) {
  return path.empty() ? absl::OkStatus() : WriteFile(path, text);
}

std::string ProfileTable(const NodeProfile& profile, double time_scale) {
  std::string text =
      "| model | on the GPU | from the host | from another GPU | moved | image | objective |\n"
      "| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n";
  const auto modelled = [&](Duration real) { return ToMilliseconds(real) / time_scale; };
  for (const MeasuredModel& model : profile.models) {
    char line[200];
    std::snprintf(
        line, sizeof line, "| %s | %.2f ms | %.2f ms | %.2f ms | %.1f MB | %.1f MB | %.1f ms |\n",
        model.name.c_str(), modelled(model.resident), modelled(model.host.median),
        modelled(model.peer.median), model.host.bytes / 1e6,
        static_cast<double>(model.footprint) / 1e6, modelled(NodeProfile::Objective(model)));
    text += line;
  }
  return text + "\n" + profile.account + "\n\n";
}

absl::Status Compare(const Options& options) {
  TORPOR_ASSIGN_OR_RETURN(const NodeProfile profile, MeasureProfile(options.truth));
  TORPOR_RETURN_IF_ERROR(WriteIfAsked(options.profile_file, profile.ToYaml()));
  std::fputs(ProfileTable(profile, options.truth.time_scale).c_str(), stdout);
  nlohmann::ordered_json json = {{"policy", options.truth.policy},
                                 {"time_scale", options.truth.time_scale},
                                 {"seconds", options.seconds},
                                 {"seed", options.truth.seed},
                                 {"turnover_ms", ToMilliseconds(profile.turnover)},
                                 {"profile_valid", profile.is_valid},
                                 {"loads", nlohmann::ordered_json::array()}};
  for (const double load : options.truth.loads) {
    TORPOR_ASSIGN_OR_RETURN(const Comparison comparison, CompareLoad(options.truth, profile, load));
    std::fputs((ToMarkdown(comparison) + "\n").c_str(), stdout);
    std::fflush(stdout);
    json["loads"].push_back(ToJson(comparison));
  }
  return WriteIfAsked(options.json_file, json.dump(2) + "\n");
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app(kDescription, "simulator_truth");
  app.add_option("--seconds", options.seconds, "Of each load, in real time")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 86400.0));
  app.add_option("--time-scale", options.truth.time_scale,
                 "Real seconds in which a modelled one passes")
      ->capture_default_str()
      ->check(CLI::Range(1.0, 1000.0));
  app.add_option("--seed", options.truth.seed, "Of the requests")->capture_default_str();
  app.add_option("--loads", options.truth.loads,
                 "Shares of the time in which simulated GPUs are busy, from 0 to 1")
      ->delimiter(',')
      ->type_name("LIST")
      ->capture_default_str()
      ->check(CLI::Range(0.01, 0.99));
  app.add_option("--policy", options.truth.policy, "As in torpord's configuration")
      ->capture_default_str()
      ->check(CLI::IsMember({"torpor", "torpor-plus", "fifo", "lru"}));
  app.add_option("--json", options.json_file, "Where to write all figures")->type_name("FILE");
  app.add_option("--profile", options.profile_file,
                 "Where to write the measured profile, as torpor-sim reads it")
      ->type_name("FILE");
  CLI11_PARSE(app, argc, argv);
  options.truth.length = Duration(std::llround(options.seconds * 1e9));
  const absl::Status status = Compare(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "simulator_truth: %s\n", std::string(status.message()).c_str());
  return 1;
}

}  // namespace
}  // namespace torpor::truth

int main(int argc, char** argv) {
  try {
    return torpor::truth::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "simulator_truth: %s\n", error.what());
    return 1;
  }
}

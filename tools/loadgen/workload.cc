#include "tools/loadgen/workload.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <set>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace torpor::loadgen {
namespace {

// Returns InvalidArgument with the line (from 1) of `node`.
absl::Status Invalid(const YAML::Node& node, std::string_view message) {
  return absl::InvalidArgumentError(
      absl::StrCat("line ", node.Mark().line + 1, ": ", std::string(message)));
}

// Returns an error if `map` is no mapping or has a key outside `known`.
absl::Status RefuseUnknownKeys(const YAML::Node& map, std::initializer_list<const char*> known) {
  if (!map.IsMap()) return Invalid(map, "not a mapping");
  for (const auto& entry : map) {
    const auto key = entry.first.as<std::string>("");
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      return Invalid(entry.first, "unknown key '" + key + "'");
    }
  }
  return absl::OkStatus();
}

// Reads a key into `value`. Leaves `value` alone if the key is absent.
template <typename T>
absl::Status Read(const YAML::Node& map, const char* key, T* value) {
  const YAML::Node node = map[key];
  if (!node) return absl::OkStatus();
  try {
    *value = node.as<T>();
    return absl::OkStatus();
  } catch (const YAML::Exception&) {
    return Invalid(node, absl::StrCat("'", key, "' has no usable value"));
  }
}

// Reads a number of units of `unit_s` seconds. Leaves `value` alone if the key is absent; refuses
// negative numbers and 1e9 s or more.
absl::Status ReadDuration(const YAML::Node& map, const char* key, double unit_s, Duration* value) {
  double number = ToSeconds(*value) / unit_s;
  TORPOR_RETURN_IF_ERROR(Read(map, key, &number));
  if (!(number >= 0 && number * unit_s < 1e9)) {
    return Invalid(map[key], absl::StrCat("'", key, "' is out of range"));
  }
  *value = Duration(std::llround(number * unit_s * 1e9));
  return absl::OkStatus();
}

// Reads a parsed workload file. Relative paths start from `folder`; a non-empty `target` replaces
// the file's. Errors name the line.
class Reader {
 public:
  Reader(std::string folder, std::string target)
      : folder_(std::move(folder)), target_(std::move(target)) {}

  // Reads the whole file. Function names must be unique.
  absl::StatusOr<Workload> ReadRoot(const YAML::Node& root) {
    Workload workload;
    TORPOR_RETURN_IF_ERROR(
        RefuseUnknownKeys(root, {"version", "target", "arrivals", "cv", "rates", "seed",
                                 "duration_s", "warm_up_s", "timeout_s", "functions"}));
    std::string version;
    TORPOR_RETURN_IF_ERROR(Read(root, "version", &version));
    if (version != "v1") return Invalid(root, "'version' must be v1");
    if (target_.empty()) TORPOR_RETURN_IF_ERROR(Read(root, "target", &target_));
    TORPOR_RETURN_IF_ERROR(ReadArrivals(root, &workload.arrivals));
    TORPOR_RETURN_IF_ERROR(ReadRates(root, &workload.rates));
    TORPOR_RETURN_IF_ERROR(Read(root, "seed", &workload.seed));
    if (root["duration_s"]) {
      TORPOR_RETURN_IF_ERROR(ReadDuration(root, "duration_s", 1, &workload.duration.emplace()));
    }
    TORPOR_RETURN_IF_ERROR(ReadDuration(root, "warm_up_s", 1, &workload.warm_up));
    TORPOR_RETURN_IF_ERROR(ReadDuration(root, "timeout_s", 1, &workload.timeout));
    std::set<std::string> names;
    for (const YAML::Node& node : root["functions"]) {
      TORPOR_ASSIGN_OR_RETURN(FunctionLoad function, Function(node));
      if (node["rate_per_s"] && !workload.rates.UsesOwnRates()) {
        return Invalid(node["rate_per_s"], "'rate_per_s' and a table of 'rates': give one");
      }
      if (!names.insert(function.name).second) {
        return Invalid(node, "a second function '" + function.name + "'");
      }
      workload.functions.push_back(std::move(function));
    }
    if (workload.functions.empty()) return Invalid(root, "no functions");
    return workload;
  }

 private:
  // Reads `arrivals` and `cv`.
  static absl::Status ReadArrivals(const YAML::Node& root, workload::ArrivalModel* model) {
    std::string name(ArrivalProcessName(model->process));
    TORPOR_RETURN_IF_ERROR(Read(root, "arrivals", &name));
    const auto process = workload::ParseArrivalProcess(name);
    if (!process) {
      return Invalid(root["arrivals"], "arrivals are constant, poisson, gamma or artifact");
    }
    model->process = *process;
    TORPOR_RETURN_IF_ERROR(Read(root, "cv", &model->variation));
    if (!(model->variation >= workload::kMinVariation &&
          model->variation <= workload::kMaxVariation)) {
      return Invalid(root["cv"], "'cv' is not from 0.01 to 100");
    }
    if (root["cv"] && *process != workload::ArrivalProcess::kGamma) {
      return Invalid(root["cv"], "'cv' is for gamma arrivals only");
    }
    return absl::OkStatus();
  }

  // Reads `rates`, a table or a generator; absent for the functions' own rates.
  absl::Status ReadRates(const YAML::Node& root, RateSource* rates) const {
    if (!root["rates"]) return absl::OkStatus();
    std::string text;
    TORPOR_RETURN_IF_ERROR(Read(root, "rates", &text));
    auto source = ParseRateSource(text, folder_);
    if (!source.ok()) return Invalid(root["rates"], std::string(source.status().message()));
    *rates = *std::move(source);
    return absl::OkStatus();
  }

  // Reads an entry of `functions`.
  absl::StatusOr<FunctionLoad> Function(const YAML::Node& node) const {
    TORPOR_RETURN_IF_ERROR(RefuseUnknownKeys(
        node,
        {"name", "url", "path", "rate_per_s", "objective_ms", "percentile", "body", "expected"}));
    FunctionLoad function;
    TORPOR_RETURN_IF_ERROR(Read(node, "name", &function.name));
    if (function.name.empty()) return Invalid(node, "a function without a name");
    TORPOR_RETURN_IF_ERROR(Read(node, "rate_per_s", &function.rate_per_s));
    if (!(function.rate_per_s >= 0 && function.rate_per_s <= 1e6)) {
      return Invalid(node, "'rate_per_s' is out of range");
    }
    TORPOR_RETURN_IF_ERROR(ReadDuration(node, "objective_ms", 1e-3, &function.objective));
    TORPOR_RETURN_IF_ERROR(Read(node, "percentile", &function.percentile));
    // A percentile of at most 1 was meant as a share, like in torpord's configuration.
    if (!(function.percentile > 1 && function.percentile <= 100)) {
      return Invalid(node["percentile"],
                     "'percentile' is in percent, over 1 and at most 100, for example 98");
    }
    TORPOR_RETURN_IF_ERROR(ReadPlace(node, &function));
    TORPOR_RETURN_IF_ERROR(ReadBodies(node, &function));
    return function;
  }

  // Reads host and path: from `url`, else from the target and `path`.
  absl::Status ReadPlace(const YAML::Node& node, FunctionLoad* function) const {
    function->host = target_;
    function->path = "/function/" + function->name + "/";
    TORPOR_RETURN_IF_ERROR(Read(node, "path", &function->path));
    std::string url;
    TORPOR_RETURN_IF_ERROR(Read(node, "url", &url));
    if (!url.empty()) {
      constexpr std::string_view kScheme = "http://";
      if (!url.starts_with(kScheme)) return Invalid(node, "'url' does not start with http://");
      const std::size_t slash = url.find('/', kScheme.size());
      function->host = url.substr(kScheme.size(), slash - kScheme.size());
      function->path = slash == std::string::npos ? "/" : url.substr(slash);
    }
    if (function->host.find(':') == std::string::npos) {
      return Invalid(node, "no host:port: set 'url', or 'target' for all functions");
    }
    if (!function->path.starts_with("/")) return Invalid(node, "'path' does not start with /");
    return absl::OkStatus();
  }

  // Reads either `body`, for any answer, or the file of expected answers.
  absl::Status ReadBodies(const YAML::Node& node, FunctionLoad* function) const {
    std::string body;
    std::string expected;
    TORPOR_RETURN_IF_ERROR(Read(node, "body", &body));
    TORPOR_RETURN_IF_ERROR(Read(node, "expected", &expected));
    if (body.empty() == expected.empty()) {
      return Invalid(node, "give either 'body' or 'expected'");
    }
    if (expected.empty()) {
      function->exchanges = {Exchange{body, "", 0}};
      return absl::OkStatus();
    }
    const auto path = std::filesystem::path(folder_) / expected;
    TORPOR_ASSIGN_OR_RETURN(function->exchanges, ReadExchanges(path.string()));
    return absl::OkStatus();
  }

  const std::string folder_;
  std::string target_;
};

}  // namespace

absl::StatusOr<Workload> ParseWorkload(const std::string& yaml, const std::string& folder,
                                       const std::string& target) {
  try {
    return Reader(folder, target).ReadRoot(YAML::Load(yaml));
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(error.what());
  }
}

absl::StatusOr<workload::MinuteRates> MakeRates(const Workload& workload) {
  std::vector<double> per_second;
  per_second.reserve(workload.functions.size());
  for (const FunctionLoad& function : workload.functions) {
    per_second.push_back(function.rate_per_s);
  }
  return MakeRates(workload.rates, per_second, workload.duration.value_or(kDefaultDuration),
                   workload.seed);
}

absl::StatusOr<Workload> ReadWorkload(const std::string& path, const std::string& target) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  std::stringstream text;
  text << file.rdbuf();
  auto workload =
      ParseWorkload(text.str(), std::filesystem::path(path).parent_path().string(), target);
  if (!workload.ok()) {
    return absl::Status(workload.status().code(),
                        absl::StrCat(path, ": ", workload.status().message()));
  }
  return workload;
}

}  // namespace torpor::loadgen

#include "server/config/config_loader.h"

#include <fmt/format.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>
#include <type_traits>

#include "base/status_macros.h"
#include "server/config/config_kinds.h"
#include "server/config/function_command.h"
#include "server/config/setting_values.h"
#include "server/config/settings.h"
#include "server/config/token_file.h"

namespace torpor::server {
namespace {

constexpr std::string_view kVersion = "v1";

// Collects all mistakes for one report.
class Findings {
 public:
  void Add(const std::string& place, std::string_view what) {
    lines_.push_back(fmt::format("{}: {}", place, what));
  }
  absl::Status status() const {
    if (lines_.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(fmt::format("{}", fmt::join(lines_, "\n")));
  }

 private:
  std::vector<std::string> lines_;
};

// Makes a path absolute, as clients run in other folders.
std::string ResolvePath(const std::filesystem::path& folder, const std::string& text) {
  return text.empty() ? text : std::filesystem::absolute(folder / text).lexically_normal().string();
}

// file:line of every name, for checks that come after all sources were read.
using NamePlaces = std::map<std::string, std::string>;

// A list of named records in the file.
template <typename T>
struct ListOf {
  std::string_view key;
  std::string_view item;  // name of a record in messages
  const Settings<T>& settings;
};

// Whether records of the type have instances, in a list of their own.
template <typename T>
inline constexpr bool kHasInstances = std::is_same_v<T, FunctionConfig>;
constexpr std::string_view kInstances = "instances";

// Reads one YAML document into a Config.
class FileReader {
 public:
  FileReader(std::filesystem::path file, Config& config, Findings& findings)
      : file_(std::move(file)), config_(config), findings_(findings) {}

  // Returns the places of the functions.
  NamePlaces Read(const YAML::Node& root) && {
    if (!root.IsMap()) {
      Complain(root, "expected settings, such as `version: v1`");
      return {};
    }
    ReadVersion(root);
    const ListOf<TenantConfig> tenants{"tenants", "tenant", TenantSettings()};
    const ListOf<FunctionConfig> functions{"functions", "function", FunctionSettings()};
    NamePlaces places;
    std::set<std::string> seen;
    for (const auto& entry : root) {
      const std::string key = KeyOf(entry.first, seen);
      if (key.empty() || key == "version") continue;
      if (key == tenants.key) {
        ReadList(tenants, entry.second, config_.tenants);
      } else if (key == functions.key) {
        places = ReadList(functions, entry.second, config_.functions);
      } else {
        ReadSetting(NodeSettings(), config_, entry.first, entry.second,
                    {"functions", "tenants", "version"});
      }
    }
    return places;
  }

 private:
  void Complain(const YAML::Node& node, std::string_view what) {
    const YAML::Mark mark = node.Mark();
    findings_.Add(
        mark.is_null() ? file_.string() : fmt::format("{}:{}", file_.string(), mark.line + 1),
        what);
  }

  // Returns the key, or empty text if the node is no key or repeats a key.
  std::string KeyOf(const YAML::Node& node, std::set<std::string>& seen) {
    if (!node.IsScalar() || node.Scalar().empty()) {
      Complain(node, "expected the name of a setting");
      return {};
    }
    if (!seen.insert(node.Scalar()).second) {
      Complain(node, fmt::format("{} stands twice; keep one", node.Scalar()));
      return {};
    }
    return node.Scalar();
  }

  void ReadVersion(const YAML::Node& root) {
    for (const auto& entry : root) {
      if (!entry.first.IsScalar() || entry.first.Scalar() != "version") continue;
      if (!entry.second.IsScalar() || entry.second.Scalar() != kVersion) {
        Complain(entry.second, "version: this release reads v1 only; write `version: v1`");
      }
      return;
    }
    Complain(root, "version is missing; write `version: v1` as the first line");
  }

  template <typename T>
  void ReadSetting(const Settings<T>& settings, T& target, const YAML::Node& key_node,
                   const YAML::Node& value, std::vector<std::string_view> other_keys) {
    const std::string& key = key_node.Scalar();
    const Setting<T>* const setting = FindSetting(settings, key);
    if (setting == nullptr && key == "keeps_state") {
      return Complain(
          key_node,
          "keeps_state: no such setting any more; leave it out, since all functions keep "
          "their state (durability: eviction), or write durability: none");
    }
    if (setting == nullptr) {
      for (const Setting<T>& known : settings) other_keys.push_back(known.key);
      const std::string_view nearest = NearestName(key, other_keys);
      Complain(key_node, nearest.empty()
                             ? fmt::format("{}: no such setting; see docs/configuration.md", key)
                             : fmt::format("{}: no such setting; did you mean {}?", key, nearest));
      return;
    }
    std::optional<std::string> text = setting->is_words ? WordsOf(value) : TextOf(value);
    if (!text) {
      Complain(value, fmt::format("{}: expected one value ({})", key, setting->value_name));
      return;
    }
    if (setting->is_path) *text = ResolvePath(file_.parent_path(), *text);
    const absl::Status status = setting->set(target, *text);
    if (!status.ok()) {
      Complain(value, fmt::format("{}: {}", key, std::string(status.message())));
    }
  }

  // Returns a scalar's text; a sequence of scalars becomes a comma-separated list.
  static std::optional<std::string> TextOf(const YAML::Node& node) {
    if (node.IsNull()) return std::string();
    if (node.IsScalar()) return node.Scalar();
    if (!node.IsSequence()) return std::nullopt;
    std::string list;
    for (const YAML::Node& item : node) {
      if (!item.IsScalar()) return std::nullopt;
      if (!list.empty()) list += ',';
      list += item.Scalar();
    }
    return list;
  }

  // Returns a text for WordsKind: the words of a sequence may have blanks and commas.
  static std::optional<std::string> WordsOf(const YAML::Node& node) {
    if (!node.IsSequence()) return TextOf(node);
    std::vector<std::string> words;
    for (const YAML::Node& item : node) {
      if (!item.IsScalar()) return std::nullopt;
      words.push_back(item.Scalar());
    }
    return WordsKind().Format(words);
  }

  // Reads a list of named records into `items` and returns their places.
  template <typename T>
  NamePlaces ReadList(const ListOf<T>& list, const YAML::Node& node,
                      std::map<std::string, T>& items) {
    NamePlaces places;
    if (node.IsNull()) return places;
    if (!node.IsSequence()) {
      Complain(node, fmt::format("{}: expected a list; begin each {} with `- name:`", list.key,
                                 list.item));
      return places;
    }
    for (const YAML::Node& item : node) ReadItem(list, item, items, places);
    return places;
  }

  template <typename T>
  void ReadItem(const ListOf<T>& list, const YAML::Node& node, std::map<std::string, T>& items,
                NamePlaces& places) {
    if (!node.IsMap()) {
      Complain(node, fmt::format("{}: expected `- name: ...` and its settings", list.key));
      return;
    }
    T item;
    std::set<std::string> seen;
    for (const auto& entry : node) {
      const std::string key = KeyOf(entry.first, seen);
      if (key.empty()) continue;
      if constexpr (kHasInstances<T>) {
        if (key == kInstances) {
          const ListOf<InstanceConfig> instances{kInstances, "instance", InstanceSettings()};
          ReadList(instances, entry.second, item.instances);
        } else {
          ReadSetting(list.settings, item, entry.first, entry.second, {kInstances});
        }
      } else {
        ReadSetting(list.settings, item, entry.first, entry.second, {});
      }
    }
    for (const Setting<T>& setting : list.settings) {
      if (setting.is_required && !seen.contains(std::string(setting.key))) {
        Complain(node, fmt::format("{} is missing; every {} needs one", setting.key, list.item));
      }
    }
    if (item.name.empty()) return;
    places[item.name] = fmt::format("{}:{}", file_.string(), node.Mark().line + 1);
    if (!items.emplace(item.name, item).second) {
      Complain(node, fmt::format("another {} {} stands above already; give each its own name",
                                 list.item, item.name));
    }
  }

  const std::filesystem::path file_;
  Config& config_;
  Findings& findings_;
};

NamePlaces ReadYaml(const std::string& yaml, const std::filesystem::path& file_name, Config& config,
                    Findings& findings) {
  // yaml-cpp throws; no other exception reaches this point.
  try {
    return FileReader(file_name, config, findings).Read(YAML::Load(yaml));
  } catch (const YAML::Exception& error) {
    findings.Add(error.mark.is_null()
                     ? file_name.string()
                     : fmt::format("{}:{}", file_name.string(), error.mark.line + 1),
                 fmt::format("not valid YAML: {}", error.msg));
  }
  return {};
}

void ApplyText(const std::string& place, const Setting<Config>& setting, const std::string& text,
               Config& config, Findings& findings) {
  const std::string value = setting.is_path ? ResolvePath({}, text) : text;
  const absl::Status status = setting.set(config, value);
  if (!status.ok()) findings.Add(place, std::string(status.message()));
}

void ApplyEnvironment(const ConfigSources& sources, Config& config, Findings& findings) {
  if (!sources.environment) return;
  for (const Setting<Config>& setting : NodeSettings()) {
    const std::string name = EnvironmentName(setting.key);
    const std::optional<std::string> text = sources.environment(name);
    if (text) ApplyText(name, setting, *text, config, findings);
  }
}

void ApplyFlags(const ConfigSources& sources, Config& config, Findings& findings) {
  for (const auto& [key, text] : sources.flags) {
    const Setting<Config>* const setting = FindSetting(NodeSettings(), key);
    if (setting == nullptr) {
      findings.Add(FlagName(key), "no such setting");
    } else {
      ApplyText(FlagName(key), *setting, text, config, findings);
    }
  }
}

// Returns what is wrong with the function's instances, or empty text.
std::string WrongInstances(const FunctionConfig& function, bool is_anonymous) {
  if (function.instances.empty()) {
    if (!function.token_file.empty() || is_anonymous) return {};
    return fmt::format("token_file is missing; function {} needs one, or be the anonymous_function",
                       function.name);
  }
  if (!function.token_file.empty() || !function.upstream.empty()) {
    return "instances have a token_file and an upstream each; drop the function's own";
  }
  if (is_anonymous) {
    return "instances are told apart by tokens, which the anonymous_function has not; drop "
           "instances, or name another anonymous_function";
  }
  return {};
}

void Finish(const NamePlaces& places, const std::string& file, Config& config, Findings& findings) {
  if (config.client_socket.empty())
    config.client_socket = FunctionFolderOf(config) + "/torpor.sock";
  if (config.admin_socket.empty()) config.admin_socket = AdminFolderOf(config) + "/admin.sock";
  if (config.client_socket == config.admin_socket) {
    findings.Add(file, "client_socket and admin_socket are one path; give each its own");
  }
  // Capacity of sockaddr_un without the final zero.
  constexpr std::size_t kMaxSocketPath = 107;
  for (const std::string& path : {config.client_socket, config.admin_socket}) {
    if (path.size() > kMaxSocketPath) {
      findings.Add(file, fmt::format("{}: longer than a socket's path may be ({} bytes); choose a "
                                     "shorter run_dir",
                                     path, kMaxSocketPath));
    }
  }
  const std::string& anonymous = config.session.anonymous_function;
  if (!anonymous.empty() && !config.functions.contains(anonymous)) {
    findings.Add(file, fmt::format("anonymous_function: there is no function {}; add it under "
                                   "functions",
                                   anonymous));
  }
  if (config.device.address_mode == AddressMode::kTranslate && config.device.chunk_bytes > 0) {
    for (const Bytes size : config.device.partition_sizes.value_or(std::vector<Bytes>())) {
      if (size % config.device.chunk_bytes == 0) continue;
      findings.Add(file, fmt::format("partition_sizes: {} is no multiple of chunk_bytes, which is "
                                     "{}; leave it out, or make chunk_bytes smaller",
                                     size, config.device.chunk_bytes));
    }
  }
  for (const auto& [name, function] : config.functions) {
    const auto found = places.find(name);
    const std::string& place = found == places.end() ? file : found->second;
    const std::string wrong = WrongInstances(function, name == anonymous);
    if (!wrong.empty()) findings.Add(place, wrong);
    for (const InstanceConfig& instance : InstancesOf(function)) {
      const absl::Status command = CheckCommand(instance);
      if (!command.ok()) findings.Add(place, std::string(command.message()));
    }
    if (!config.tenants.empty() && !config.tenants.contains(function.tenant)) {
      findings.Add(place, fmt::format("tenant: there is no tenant {}; add it under tenants",
                                      function.tenant));
    }
  }
}

absl::StatusOr<std::string> ReadText(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  if (!stream || !(text << stream.rdbuf())) {
    return absl::NotFoundError(fmt::format(
        "{}: cannot be read; write one (docs/configuration.md) or name another with --config-file "
        "or TORPOR_CONFIG_FILE",
        file.string()));
  }
  return text.str();
}

}  // namespace

std::optional<std::string> ProcessEnvironment(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

absl::StatusOr<Config> LoadConfig(const ConfigSources& sources) {
  Config config;
  Findings findings;
  NamePlaces places;
  if (!sources.file.empty()) {
    TORPOR_ASSIGN_OR_RETURN(const std::string yaml, ReadText(sources.file));
    places = ReadYaml(yaml, sources.file, config, findings);
  }
  ApplyEnvironment(sources, config, findings);
  ApplyFlags(sources, config, findings);
  // Checks across settings would report consequences of broken settings.
  TORPOR_RETURN_IF_ERROR(findings.status());
  Finish(places, sources.file.empty() ? "configuration" : sources.file.string(), config, findings);
  TORPOR_RETURN_IF_ERROR(findings.status());
  return config;
}

absl::StatusOr<Config> ParseConfig(const std::string& yaml,
                                   const std::filesystem::path& file_name) {
  Config config;
  Findings findings;
  const NamePlaces places = ReadYaml(yaml, file_name, config, findings);
  TORPOR_RETURN_IF_ERROR(findings.status());
  Finish(places, file_name.string(), config, findings);
  TORPOR_RETURN_IF_ERROR(findings.status());
  return config;
}

absl::StatusOr<Config> ParseOver(const std::string& yaml, const std::filesystem::path& file_name,
                                 const Config& base, bool prune) {
  Config read;
  Findings findings;
  const NamePlaces places = ReadYaml(yaml, file_name, read, findings);
  for (const Setting<Config>& setting : NodeSettings()) {
    if (setting.text(read) == setting.text(Config())) continue;
    findings.Add(
        file_name.string(),
        fmt::format("{}: a setting of the node, which belongs in torpord's own file and is "
                    "applied by a restart; drop it",
                    setting.key));
  }
  TORPOR_RETURN_IF_ERROR(findings.status());
  Config config = base;
  if (prune) {
    config.functions.clear();
    config.tenants.clear();
  }
  for (const auto& [name, function] : read.functions) config.functions[name] = function;
  for (const auto& [name, tenant] : read.tenants) config.tenants[name] = tenant;
  Finish(places, file_name.string(), config, findings);
  TORPOR_RETURN_IF_ERROR(findings.status());
  return config;
}

absl::Status CheckConfig(const Config& config, const std::string& place) {
  Config checked = config;
  Findings findings;
  Finish({}, place, checked, findings);
  return findings.status();
}

absl::Status CheckFiles(const Config& config) {
  Findings findings;
  for (const auto& [name, function] : config.functions) {
    for (const InstanceConfig& instance : InstancesOf(function)) {
      if (instance.token_file.empty()) continue;
      const auto token = ReadTokenFile(instance.token_file, FullNameOf(function, instance));
      if (!token.ok()) findings.Add(instance.token_file, std::string(token.status().message()));
    }
  }
  for (const auto& [name, function] : config.functions) {
    const absl::Status user = CheckUser(function, geteuid());
    if (!user.ok()) findings.Add(fmt::format("function {}", name), std::string(user.message()));
  }
  if (!config.emulator_topology.empty() && access(config.emulator_topology.c_str(), R_OK) != 0) {
    findings.Add(config.emulator_topology,
                 "cannot be read; emulator_topology names it, and there is no preset of this name");
  }
  if (!config.cuda_library_dir.empty() &&
      !std::filesystem::exists(config.cuda_library_dir + "/libcuda.so.1")) {
    findings.Add(config.cuda_library_dir,
                 "has no libcuda.so.1; cuda_library_dir must name the driver's folder");
  }
  return findings.status();
}

}  // namespace torpor::server

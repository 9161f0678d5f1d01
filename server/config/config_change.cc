#include "server/config/config_change.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "server/config/config_kinds.h"
#include "server/config/settings.h"

namespace torpor::server {
namespace {

constexpr const char* kWhyNodeIsFixed = "a setting of the node, which a restart applies";
constexpr const char* kWhyFunctionIsFixed =
    "its instances were made with it; remove the function and add it again, or restart torpord";

// Keys of a function that shape its instances.
constexpr std::array<std::string_view, 3> kFixedOfFunction = {"gpus", "max_in_flight", "stateless"};

bool IsFixedOfFunction(std::string_view key) {
  return std::ranges::find(kFixedOfFunction, key) != kFixedOfFunction.end();
}

// The settings that differ.
template <typename Target>
std::vector<ConfigChange::Field> FieldsOf(const Settings<Target>& settings, const Target& from,
                                          const Target& to) {
  std::vector<ConfigChange::Field> fields;
  for (const Setting<Target>& setting : settings) {
    ConfigChange::Field field = {std::string(setting.key), setting.text(from), setting.text(to)};
    if (field.from != field.to) fields.push_back(std::move(field));
  }
  return fields;
}

std::string TextOf(const InstanceConfig& instance) {
  std::string text =
      fmt::format("(upstream {}, token_file {}",
                  instance.upstream.empty() ? "none" : instance.upstream, instance.token_file);
  const WordsKind words;
  if (!instance.command.empty())
    text += fmt::format(", command {}", words.Format(instance.command));
  if (!instance.environment.empty())
    text += fmt::format(", env {}", words.Format(instance.environment));
  return text + ")";
}

// The instances that differ; those of a function without a list are compared by its own settings.
std::vector<ConfigChange::Field> InstanceFieldsOf(const FunctionConfig& from,
                                                  const FunctionConfig& to) {
  std::map<std::string, ConfigChange::Field> fields;
  for (const auto& [name, instance] : from.instances) fields[name].from = TextOf(instance);
  for (const auto& [name, instance] : to.instances) fields[name].to = TextOf(instance);
  std::vector<ConfigChange::Field> changed;
  for (auto& [name, field] : fields) {
    field.key = "instance " + name;
    if (field.from != field.to) changed.push_back(std::move(field));
  }
  return changed;
}

std::vector<ConfigChange::Field> ChangedFields(const TenantConfig& from, const TenantConfig& to) {
  return FieldsOf(TenantSettings(), from, to);
}

std::vector<ConfigChange::Field> ChangedFields(const FunctionConfig& from,
                                               const FunctionConfig& to) {
  std::vector<ConfigChange::Field> fields = FieldsOf(FunctionSettings(), from, to);
  for (ConfigChange::Field& field : InstanceFieldsOf(from, to)) fields.push_back(std::move(field));
  return fields;
}

template <typename T>
ConfigChange::Items ItemsOf(const std::map<std::string, T>& from,
                            const std::map<std::string, T>& to) {
  ConfigChange::Items items;
  for (const auto& [name, item] : from) {
    if (!to.contains(name)) items.removed.push_back(name);
  }
  for (const auto& [name, item] : to) {
    const auto before = from.find(name);
    if (before == from.end()) {
      items.added.push_back(name);
      continue;
    }
    std::vector<ConfigChange::Field> fields = ChangedFields(before->second, item);
    if (!fields.empty()) items.changed.push_back({name, std::move(fields)});
  }
  return items;
}

// Moves the fields that a running daemon does not apply from the functions to `fixed`.
void SetFixedApart(ConfigChange& change) {
  for (ConfigChange::Item& item : change.functions.changed) {
    for (const ConfigChange::Field& field : item.fields) {
      if (!IsFixedOfFunction(field.key)) continue;
      change.fixed.push_back({fmt::format("{}.{}", item.name, field.key), kWhyFunctionIsFixed});
    }
    std::erase_if(item.fields, [](const auto& field) { return IsFixedOfFunction(field.key); });
  }
  std::erase_if(change.functions.changed, [](const auto& item) { return item.fields.empty(); });
}

std::string OrNone(const std::string& text) { return text.empty() ? "none" : text; }

void Describe(std::string_view kind, const ConfigChange::Items& items,
              std::vector<std::string>& lines) {
  for (const std::string& name : items.added) {
    lines.push_back(fmt::format("{} {}: added", kind, name));
  }
  for (const std::string& name : items.removed) {
    lines.push_back(fmt::format("{} {}: removed", kind, name));
  }
  for (const ConfigChange::Item& item : items.changed) {
    for (const ConfigChange::Field& field : item.fields) {
      lines.push_back(fmt::format("{} {}: {} {}, was {}", kind, item.name, field.key,
                                  OrNone(field.to), OrNone(field.from)));
    }
  }
}

}  // namespace

ConfigChange Compare(const Config& from, const Config& to) {
  ConfigChange change;
  change.functions = ItemsOf(from.functions, to.functions);
  change.tenants = ItemsOf(from.tenants, to.tenants);
  for (const ConfigChange::Field& field : FieldsOf(NodeSettings(), from, to)) {
    change.fixed.push_back({field.key, kWhyNodeIsFixed});
  }
  SetFixedApart(change);
  return change;
}

Config Applicable(const Config& from, const Config& to) {
  Config applicable = from;
  applicable.tenants = to.tenants;
  applicable.functions = to.functions;
  for (auto& [name, function] : applicable.functions) {
    const auto before = from.functions.find(name);
    if (before == from.functions.end()) continue;
    for (const std::string_view key : kFixedOfFunction) {
      const Setting<FunctionConfig>* const setting = FindSetting(FunctionSettings(), key);
      // A text that the setting itself has made.
      (void)setting->set(function, setting->text(before->second));
    }
  }
  return applicable;
}

std::vector<std::string> Describe(const ConfigChange& change) {
  std::vector<std::string> lines;
  Describe("tenant", change.tenants, lines);
  Describe("function", change.functions, lines);
  for (const ConfigChange::Fixed& fixed : change.fixed) {
    lines.push_back(fmt::format("{}: not changed: {}", fixed.key, fixed.reason));
  }
  return lines;
}

}  // namespace torpor::server

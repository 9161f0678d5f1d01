#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "server/config/config.h"
#include "server/settings/setting.h"

namespace torpor::server {

// Tables of all keys of the configuration, in the order of --help. The tables live as long as the
// program. Config's has every key but `functions`, `tenants` and `version`, a function's every key
// but `instances`.
const Settings<Config>& NodeSettings();
const Settings<TenantConfig>& TenantSettings();
const Settings<FunctionConfig>& FunctionSettings();
// Part of Config's.
const Settings<RouterConfig>& RouterSettings();
const Settings<scheduler::PolicyConstants>& PolicySettings();
const Settings<InstanceConfig>& InstanceSettings();

// A key and its text, as in a file.
using SettingText = std::pair<std::string, std::string>;

// Sets keys of FunctionSettings. On an error (InvalidArgument), `function` stays as it was.
absl::Status SetFunction(FunctionConfig& function, std::span<const SettingText> settings);
// The same with keys of InstanceSettings.
absl::Status SetInstance(InstanceConfig& instance, std::span<const SettingText> settings);

// The name of a key in the environment: TORPOR_HTTP_ADDRESS for http_address.
std::string EnvironmentName(std::string_view key);
// The flag of a key on the command line: --http-address for http_address.
std::string FlagName(std::string_view key);

}  // namespace torpor::server

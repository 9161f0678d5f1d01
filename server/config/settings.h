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
const Settings<InstanceConfig>& InstanceSettings();
// Part of Config's.
const Settings<scheduler::PolicyConstants>& PolicySettings();

// Keys of a function that may change while torpord runs: its objective and other keys of which
// only the scheduler has a copy.
std::span<const std::string_view> ChangeableSettings();

// A key and its text, as in a file.
using SettingText = std::pair<std::string, std::string>;

// Changes keys of ChangeableSettings. On an error (InvalidArgument), `function` stays as it was.
absl::Status ChangeFunction(FunctionConfig& function, std::span<const SettingText> changes);

// The name of a key in the environment: TORPOR_HTTP_ADDRESS for http_address.
std::string EnvironmentName(std::string_view key);
// The flag of a key on the command line: --http-address for http_address.
std::string FlagName(std::string_view key);

}  // namespace torpor::server

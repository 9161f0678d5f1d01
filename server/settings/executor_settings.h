#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/units.h"
#include "server/settings/device_settings.h"
#include "server/settings/log_settings.h"
#include "server/settings/node_addresses.h"
#include "server/settings/setting.h"

namespace torpor::server {

// The settings of an executor's process. torpord passes them as one document at the start.
struct ExecutorSettings {
  int gpu = 0;                    // index as the driver counts
  std::uint64_t epoch = 0;        // tells starts of executors for one GPU apart
  int place = 0;                  // of the GPU's executors, each with a place of its own
  std::string daemon_socket;      // torpord's node socket, for the executor to dial
  std::string socket;             // where to serve functions
  unsigned socket_mode = 0600;    // of `socket`
  int contexts = 1;               // of the GPU's executors and spare: for the owner to leave room
  std::string pool_socket{};      // of the GPU memory's owner; empty: the executor itself
  std::string descriptor_socket;  // where torpord hands out memory files
  std::string module_dir;         // the node's modules
  std::string link_profile_dir;   // keeps measurements of the GPU's links; empty: not kept
  std::string compute_cache_dir;  // keeps code that the driver has compiled; empty: as the driver
  std::string cuda_library_dir;   // of libcuda.so.1; empty: as the dynamic linker finds it
  NodeAddresses addresses;
  DeviceSettings device;
  LogSettings log;

  bool operator==(const ExecutorSettings&) const = default;
};

// The table of ExecutorSettings, in the order of help.
const Settings<ExecutorSettings>& ExecutorSettingTable();

// As in server/settings/settings_document.h.
std::string FormatExecutorSettings(const ExecutorSettings& settings);
absl::StatusOr<ExecutorSettings> ParseExecutorSettings(std::string_view document);

}  // namespace torpor::server

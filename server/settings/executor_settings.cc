#include "server/settings/executor_settings.h"

#include "server/settings/settings_document.h"
#include "server/settings/value_kinds.h"

namespace torpor::server {
namespace {

Settings<ExecutorSettings> MakeExecutorTable() {
  using Target = ExecutorSettings;
  Settings<Target> table = {
      Required(MakeSetting("gpu", CountKind{.min = 0, .max = 1023}, &Target::gpu,
                           "Index of the GPU to own, as the driver counts")),
      Required(MakeSetting("epoch", NumberKind(), &Target::epoch,
                           "Given back to torpord, which tells starts apart by this number")),
      MakeSetting("place", CountKind{.min = 0, .max = 1023}, &Target::place,
                  "Which of the GPU's executors this is; each has a place of its own"),
      MakeSetting("contexts", CountKind{.min = 1, .max = 1023}, &Target::contexts,
                  "Executors and spares that the GPU may have at a time"),
      Required(MakeSetting("daemon_socket", PathKind{{"PATH"}}, &Target::daemon_socket,
                           "torpord's node socket to dial")),
      Required(MakeSetting("socket", PathKind{{"PATH"}}, &Target::socket,
                           "Where to serve functions; an existing socket is replaced")),
      MakeSetting("socket_mode", FileModeKind(), &Target::socket_mode, "Octal mode of that socket"),
      MakeSetting("pool_socket", PathKind{{"PATH"}}, &Target::pool_socket,
                  "Where the owner of the GPU's memory listens (--own-pool); empty: the executor "
                  "owns the memory itself"),
      Required(MakeSetting("descriptor_socket", PathKind{{"PATH"}}, &Target::descriptor_socket,
                           "Where torpord hands out memory files")),
      Required(MakeSetting("module_dir", PathKind{{"DIR"}}, &Target::module_dir,
                           "Folder of the node's modules")),
      MakeSetting("link_profile_dir", PathKind{{"DIR"}}, &Target::link_profile_dir,
                  "Folder that keeps measurements of the GPU's links; empty: not kept"),
      MakeSetting("compute_cache_dir", PathKind{{"DIR"}}, &Target::compute_cache_dir,
                  "Folder that keeps code compiled by the driver (CUDA_CACHE_PATH); empty: the "
                  "driver's own choice"),
      MakeSetting("cuda_library_dir", PathKind{{"DIR"}}, &Target::cuda_library_dir,
                  "Folder of libcuda.so.1 and the libraries beside it; empty: where the dynamic "
                  "linker finds them"),
  };
  AddSettingsOf(table, &Target::addresses, NodeAddressTable());
  AddSettingsOf(table, &Target::device, DeviceSettingTable());
  AddSettingsOf(table, &Target::log, LogSettingTable());
  return table;
}

}  // namespace

const Settings<ExecutorSettings>& ExecutorSettingTable() {
  static const Settings<ExecutorSettings> table = MakeExecutorTable();
  return table;
}

std::string FormatExecutorSettings(const ExecutorSettings& settings) {
  return FormatSettingsDocument(ExecutorSettingTable(), settings);
}

absl::StatusOr<ExecutorSettings> ParseExecutorSettings(std::string_view document) {
  return ParseSettingsDocument(ExecutorSettingTable(), document);
}

}  // namespace torpor::server

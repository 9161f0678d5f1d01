#pragma once

#include <optional>
#include <vector>

#include "base/units.h"
#include "server/settings/device_modes.h"
#include "server/settings/setting.h"

namespace torpor::server {

// Settings for the use of a GPU (docs/configuration.md), the same for every executor.
struct DeviceSettings {
  Bytes driver_reserve = 0;  // device memory that stays free for the driver; 0: chosen by size
  Bytes pool_bytes = 0;      // device memory for images; 0: all that stays free
  Bytes chunk_bytes = 0;     // unit in which images occupy device memory; 0: chosen by size
  AddressMode address_mode = AddressMode::kMap;
  // Sizes of the slots in the arena's partitions (kTranslate), ascending. nullopt: the sizes of
  // memory::PartitionSizes if they fit. Empty: buddy systems only.
  std::optional<std::vector<Bytes>> partition_sizes;
  bool swap_pinned = true;        // images are pinned for copies
  bool swap_pinned_ahead = true;  // before their first copy, by idle executors
  SwapPipeline swap_pipeline = SwapPipeline::kGroup;
  Bytes swap_group_bytes = 0;  // 0: chosen by measuring the GPU's link
  SwapWait swap_wait = SwapWait::kAllocation;
  Transport transport = Transport::kAuto;
  HugePages huge_pages = HugePages::kAuto;
  NumaBinding numa_binding = NumaBinding::kAuto;
  bool spare_executor = true;  // a second executor takes over at once when the first has died
  Seccomp seccomp = Seccomp::kAuto;

  bool operator==(const DeviceSettings&) const = default;
};

// The table of DeviceSettings, in the order of help.
const Settings<DeviceSettings>& DeviceSettingTable();

}  // namespace torpor::server

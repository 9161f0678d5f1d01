#pragma once

#include <optional>
#include <vector>

#include "base/units.h"
#include "server/settings/device_modes.h"
#include "server/settings/setting.h"

namespace torpor::server {

// Settings for the use of a GPU (docs/configuration.md), the same for every executor.
struct DeviceSettings {
  Bytes driver_reserve = 1 * kGiB;  // device memory left to the driver; at most a quarter of it
  Bytes chunk_bytes = 2 * kMiB;     // unit in which images occupy device memory
  AddressMode address_mode = AddressMode::kMap;
  // Sizes of the slots in the arena's partitions (kTranslate), ascending. nullopt: the sizes of
  // memory::PartitionSizes if they fit. Empty: buddy systems only.
  std::optional<std::vector<Bytes>> partition_sizes;
  bool swap_pinned = true;  // images are pinned for copies
  SwapPipeline swap_pipeline = SwapPipeline::kGroup;
  Bytes swap_group_bytes = 0;  // 0: chosen by measuring the GPU's link
  SwapWait swap_wait = SwapWait::kAllocation;
  Transport transport = Transport::kAuto;

  bool operator==(const DeviceSettings&) const = default;
};

// The table of DeviceSettings, in the order of help.
const Settings<DeviceSettings>& DeviceSettingTable();

}  // namespace torpor::server

#pragma once

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/units.h"
#include "server/settings/device_modes.h"

namespace torpor::server {

// The GPUs that a node serves.
struct FoundGpus {
  std::vector<GpuIndex> gpus;
  Bytes least_memory = 0;  // of the smallest
};

// Reads the output of `torpor-executor --list-devices`. `configured` are the GPUs to serve, empty
// for all. InvalidArgument for a GPU that there is not; NotFound without any; Internal if `output`
// lists no devices.
absl::StatusOr<FoundGpus> ReadDeviceList(std::string_view output,
                                         const std::vector<int>& configured);

// Chooses `chunk_bytes`: one part in 4096 of the smallest GPU's memory, from 2 MiB to 32 MiB, since
// the driver maps a chunk of any size in the same time and an image leaves a part of each
// allocation's last chunk empty. With `translate`, which maps once, 2 MiB. See docs/decisions/0020.
Bytes ChunkBytesFor(AddressMode mode, Bytes least_memory);

}  // namespace torpor::server

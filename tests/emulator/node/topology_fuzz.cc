#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "emulator/node/byte_size.h"
#include "emulator/node/identity.h"
#include "emulator/node/kernel_times.h"
#include "emulator/node/node_file.h"
#include "emulator/node/route.h"
#include "emulator/node/topology.h"

using namespace torpor::emulator;  // NOLINT: a fuzz target is one function

// Whatever is accepted must make sense to everything that reads it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto node = NodeFile::Private();
  const std::string text(reinterpret_cast<const char*>(data), size);
  (void)ParseBytes(text);
  const auto topology = ParseTopology(text, "fuzz");
  if (!topology.ok()) return 0;
  KernelTimes(*topology).Of("kernel");
  for (const GpuSpec& gpu : topology->gpus) {
    (void)ToText(PciAddressOf(*topology, gpu.place));
    (void)PeerRank(*topology, 0, gpu.place);
    for (const auto other : {std::optional<unsigned>(), std::optional<unsigned>(0)}) {
      (void)RouteBetween(*topology, (*node)->state(), other, gpu.place).Reserve({}, 1);
      (void)RouteBetween(*topology, (*node)->state(), gpu.place, other).Reserve({}, 1);
    }
  }
  return 0;
}

#include "server/settings/device_settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/status_macros.h"
#include "memory/partition_table.h"
#include "server/settings/value_kinds.h"

namespace torpor::server {
namespace {

constexpr Bytes kChunkUnit = 2 * kMiB;  // granularity of the driver's physical memory

// Sizes of slots in a partition, "auto" or "none".
struct PartitionSizesKind {
  using Value = std::optional<std::vector<Bytes>>;
  static constexpr bool kIsPath = false;

  absl::StatusOr<Value> Parse(std::string_view text) const {
    if (text == "auto") return Value();
    if (text == "none") return Value(std::vector<Bytes>());
    TORPOR_ASSIGN_OR_RETURN(std::vector<Bytes> sizes, ParseByteList(text));
    if (sizes.empty()) {
      return absl::InvalidArgumentError("names no size; expected sizes, none or auto");
    }
    const memory::PartitionSizes partitions{.buddy_unit_bytes = kChunkUnit};
    for (const Bytes size : sizes) {
      if (partitions.MayHaveSlotsOf(size)) continue;
      return absl::InvalidArgumentError(
          fmt::format("slots of {} bytes do not fit a partition; use multiples of 2MiB that fill "
                      "{}MiB but for a sixteenth, for example 2MiB, 20MiB or 32MiB",
                      size, partitions.partition_bytes / kMiB));
    }
    std::ranges::sort(sizes);
    return Value(std::move(sizes));
  }

  std::string Format(const Value& value) const {
    if (!value) return "auto";
    if (value->empty()) return "none";
    std::string list;
    for (const Bytes size : *value) {
      if (!list.empty()) list += ',';
      list += FormatBytes(size);
    }
    return list;
  }

  std::string value_name() const { return "LIST"; }
};

Settings<DeviceSettings> MakeDeviceTable() {
  using Target = DeviceSettings;
  return {
      MakeSetting(
          "driver_reserve", SizeOrAutoKind(), &Target::driver_reserve,
          "Device memory that images leave free beside context and libraries: for modules, "
          "local memory, libraries' handles and arrays; at most a quarter of the GPU; auto: "
          "3GiB or 3% of the GPU, the larger"),
      MakeSetting("pool_bytes", SizeOrAutoKind{.min = kChunkUnit}, &Target::pool_bytes,
                  "Device memory for images; auto: all but driver_reserve"),
      MakeSetting("chunk_bytes", MultipleOrAutoKind{{.unit = kChunkUnit}}, &Target::chunk_bytes,
                  "Unit in which images occupy device memory; auto: a 4096th of the smallest GPU, "
                  "from 2MiB to 32MiB, and 2MiB with translate"),
      MakeSetting("address_mode", ChoiceKind<AddressMode>(), &Target::address_mode,
                  "How the GPU addresses images: mapped at the functions' own addresses, or "
                  "anywhere, by addresses that are translated in calls"),
      MakeSetting("partition_sizes", PartitionSizesKind(), &Target::partition_sizes,
                  "Sizes of the slots in the arena's partitions with translate, as 2MiB,20MiB; "
                  "none: buddy systems only; auto: 2MiB and 20MiB if they fit"),
      MakeSetting("swap_pinned", FlagKind(), &Target::swap_pinned, "Pin images for copies"),
      MakeSetting("swap_pinned_ahead", FlagKind(), &Target::swap_pinned_ahead,
                  "Pin images while executors are idle, not only at the first copy"),
      MakeSetting("swap_pipeline", ChoiceKind<SwapPipeline>(), &Target::swap_pipeline,
                  "What runs while an image is swapped in: nothing, or work whose allocations "
                  "have arrived, copied one by one or in groups"),
      MakeSetting("swap_group_bytes", SizeOrAutoKind{.min = kMinGroupBytes, .max = kGiB},
                  &Target::swap_group_bytes,
                  "Size of a group; auto: chosen by measuring each GPU's link"),
      MakeSetting("swap_wait", ChoiceKind<SwapWait>(), &Target::swap_wait,
                  "What a kernel with a pointer waits for: the whole allocation, or the group at "
                  "the pointer"),
      MakeSetting("transport", ChoiceKind<Transport>(), &Target::transport,
                  "How batches and replies travel: by rings in shared memory, by gRPC, or as each "
                  "function chooses"),
      MakeSetting("huge_pages", ChoiceKind<HugePages>(), &Target::huge_pages,
                  "Whether images lie in huge pages where the system gives shared memory any"),
      MakeSetting("numa_binding", ChoiceKind<NumaBinding>(), &Target::numa_binding,
                  "Whether executors keep to the CPUs of their GPU's NUMA node"),
      MakeSetting(
          "spare_executor", FlagKind(), &Target::spare_executor,
          "Keep a second executor ready for each GPU, which takes over when the first dies; "
          "costs the GPU's memory of two more CUDA contexts"),
      MakeSetting(
          "seccomp", ChoiceKind<Seccomp>(), &Target::seccomp,
          "What becomes of system calls and files that executors have no need for: refused, "
          "logged, or nothing; auto: refused with the emulator, logged with a GPU"),
  };
}

}  // namespace

const Settings<DeviceSettings>& DeviceSettingTable() {
  static const Settings<DeviceSettings> table = MakeDeviceTable();
  return table;
}

}  // namespace torpor::server

#include "server/config/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "memory/partition_table.h"
#include "proto/wire/control_messages.h"
#include "scheduler/events.h"
#include "scheduler/setup.h"
#include "server/config/setting_values.h"

namespace torpor::server {
namespace {

template <typename Member>
struct TargetOf;
template <typename Class, typename Value>
struct TargetOf<Value Class::*> {
  using Type = Class;
};
template <auto kMember>
using Target = typename TargetOf<decltype(kMember)>::Type;

constexpr Bytes kAnyBytes = std::numeric_limits<Bytes>::max();
static_assert(wire::kMaxDevices == 1 + scheduler::kMaxCompanions,
              "a function may have as many GPUs as its program can see");

constexpr Bytes kChunkUnit = 2 * kMiB;  // what drivers give memory in

template <auto kMember>
absl::Status SetText(Target<kMember>& target, std::string_view text) {
  target.*kMember = text;
  return absl::OkStatus();
}

template <auto kMember>
absl::Status SetFlag(Target<kMember>& target, std::string_view text) {
  if (text != "true" && text != "false") {
    return absl::InvalidArgumentError(fmt::format("\"{}\" is neither true nor false", text));
  }
  target.*kMember = text == "true";
  return absl::OkStatus();
}

template <auto kMember, Bytes kLeast, Bytes kMax = kAnyBytes>
absl::Status SetBytes(Target<kMember>& target, std::string_view text) {
  TORPOR_ASSIGN_OR_RETURN(const Bytes bytes, ParseBytes(text));
  if (bytes < kLeast) {
    return absl::InvalidArgumentError(
        fmt::format("{} is too small; use at least {} bytes", text, kLeast));
  }
  if (bytes > kMax) {
    return absl::InvalidArgumentError(
        fmt::format("{} is too large; use at most {} bytes", text, kMax));
  }
  target.*kMember = bytes;
  return absl::OkStatus();
}

template <auto kMember, Bytes kUnit>
absl::Status SetMultiple(Target<kMember>& target, std::string_view text) {
  TORPOR_ASSIGN_OR_RETURN(const Bytes bytes, ParseBytes(text));
  if (bytes == 0 || bytes % kUnit != 0) {
    return absl::InvalidArgumentError(
        fmt::format("{} does not fit; use a multiple of {} bytes", text, kUnit));
  }
  target.*kMember = bytes;
  return absl::OkStatus();
}

template <auto kMember>
absl::Status SetDuration(Target<kMember>& target, std::string_view text) {
  TORPOR_ASSIGN_OR_RETURN(const Duration duration, ParseDuration(text));
  if (duration <= Duration::zero()) {
    return absl::InvalidArgumentError(fmt::format("{} is no time; use more than 0", text));
  }
  target.*kMember = duration;
  return absl::OkStatus();
}

// Off is 0.
template <auto kMember>
absl::Status SetDurationOrOff(Target<kMember>& target, std::string_view text) {
  if (text == "off") {
    target.*kMember = Duration::zero();
    return absl::OkStatus();
  }
  absl::Status status = SetDuration<kMember>(target, text);
  if (status.ok()) return status;
  return absl::InvalidArgumentError(fmt::format("{}, or off", std::string(status.message())));
}

template <auto kMember, int kMax>
absl::Status SetCount(Target<kMember>& target, std::string_view text) {
  TORPOR_ASSIGN_OR_RETURN(const std::uint64_t count, ParseUnsigned(text));
  if (count < 1 || count > static_cast<std::uint64_t>(kMax)) {
    return absl::InvalidArgumentError(fmt::format("{} is out of range; use 1 to {}", count, kMax));
  }
  target.*kMember = static_cast<int>(count);
  return absl::OkStatus();
}

// 0: any number.
template <auto kMember>
absl::Status SetLimit(Target<kMember>& target, std::string_view text) {
  constexpr std::uint64_t kMax = 1'000'000;
  TORPOR_ASSIGN_OR_RETURN(const std::uint64_t limit, ParseUnsigned(text));
  if (limit > kMax) {
    return absl::InvalidArgumentError(
        fmt::format("{} is out of range; use 1 to {}, or 0 for any number", limit, kMax));
  }
  target.*kMember = static_cast<int>(limit);
  return absl::OkStatus();
}

template <auto kMember, bool kMayBeEmpty>
absl::Status SetAddress(Target<kMember>& target, std::string_view text) {
  if (!(kMayBeEmpty && text.empty())) TORPOR_RETURN_IF_ERROR(ParseHostAndPort(text).status());
  target.*kMember = text;
  return absl::OkStatus();
}

template <auto kMember>
absl::Status SetName(Target<kMember>& target, std::string_view text) {
  if (!IsFunctionName(text)) {
    return absl::InvalidArgumentError(fmt::format(
        "\"{}\" is not a name; use 1 to 63 of a-z, 0-9 and -, no - at either end", text));
  }
  target.*kMember = text;
  return absl::OkStatus();
}

absl::Status SetSocketMode(Config& config, std::string_view text) {
  const char* const end = text.data() + text.size();
  unsigned mode = 0;
  const auto [rest, error] = std::from_chars(text.data(), end, mode, 8);
  if (error != std::errc() || rest != end || mode > 0777) {
    return absl::InvalidArgumentError(
        fmt::format("\"{}\" is not a file mode; use octal digits, for example 0660", text));
  }
  config.socket_mode = mode;
  return absl::OkStatus();
}

absl::Status SetGpus(Config& config, std::string_view text) {
  TORPOR_ASSIGN_OR_RETURN(config.gpus, ParseIndexList(text));
  return absl::OkStatus();
}

absl::Status SetAddressBase(Config& config, std::string_view text) {
  constexpr std::uint64_t kUserSpaceEnd = 0x7000'0000'0000;
  TORPOR_ASSIGN_OR_RETURN(const std::uint64_t base, ParseUnsigned(text));
  if (base == 0 || base % kGiB != 0 || base >= kUserSpaceEnd) {
    return absl::InvalidArgumentError(
        fmt::format("{:#x} does not fit; use a multiple of 1GiB below {:#x}", base, kUserSpaceEnd));
  }
  config.address_base = base;
  return absl::OkStatus();
}

// OK if `text` is one of the words; else it is `what`.
absl::Status CheckWord(std::string_view text, std::string_view what,
                       std::span<const std::string_view> words) {
  if (std::ranges::find(words, text) != words.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(fmt::format("\"{}\" is {}; use {} or {}", text, what,
                                                fmt::join(words.first(words.size() - 1), ", "),
                                                words.back()));
}

// A setting that is one of some words.
struct Choice {
  std::string_view what_others_are;
  std::span<const std::string_view> words;
};

template <auto kMember, const Choice& kChoice>
absl::Status SetWord(Target<kMember>& target, std::string_view text) {
  TORPOR_RETURN_IF_ERROR(CheckWord(text, kChoice.what_others_are, kChoice.words));
  target.*kMember = text;
  return absl::OkStatus();
}

constexpr std::string_view kAddressModeWords[] = {"map", "translate"};
constexpr std::string_view kTooLateWords[] = {"auto", "serve", "serve-last", "refuse"};
constexpr std::string_view kSwapPipelineWords[] = {"none", "parameter", "group"};
constexpr std::string_view kSwapWaitWords[] = {"allocation", "range"};
constexpr std::string_view kLogLevelWords[] = {"trace", "debug", "info", "warn", "error", "off"};

constexpr Choice kAddressMode{"no address mode", kAddressModeWords};
constexpr Choice kTooLate{"nothing to do with requests that are late", kTooLateWords};
constexpr Choice kSwapPipeline{"no way to swap", kSwapPipelineWords};
constexpr Choice kSwapWait{"nothing to wait for", kSwapWaitWords};
constexpr Choice kLogLevel{"no log level", kLogLevelWords};

absl::Status SetPartitionSizes(Config& config, std::string_view text) {
  if (text == "auto") {
    config.partition_sizes.reset();
    return absl::OkStatus();
  }
  std::vector<Bytes> sizes;
  if (text != "none") {
    TORPOR_ASSIGN_OR_RETURN(sizes, ParseByteList(text));
    if (sizes.empty()) {
      return absl::InvalidArgumentError("names no size; write none to have none, or auto");
    }
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
  config.partition_sizes = std::move(sizes);
  return absl::OkStatus();
}

// What programs allocate must be given room: it cannot be refused as a request can.
std::vector<std::string_view> PoliciesThatEvict() {
  std::vector<std::string_view> names = scheduler::SetupNames();
  std::erase_if(names,
                [](std::string_view name) { return !scheduler::MakeSetup(name)->options.evicts; });
  return names;
}

absl::Status SetPolicy(Config& config, std::string_view text) {
  const std::vector<std::string_view> names = PoliciesThatEvict();
  const bool is_known = std::ranges::count(scheduler::SetupNames(), text) > 0;
  TORPOR_RETURN_IF_ERROR(CheckWord(
      text, is_known ? "for torpor-sim only, since it never evicts" : "no policy", names));
  config.policy = text;
  return absl::OkStatus();
}

absl::Status SetPercentile(FunctionConfig& function, std::string_view text) {
  TORPOR_ASSIGN_OR_RETURN(function.percentile, ParsePercentile(text));
  return absl::OkStatus();
}

absl::Status SetWeight(TenantConfig& tenant, std::string_view text) {
  TORPOR_ASSIGN_OR_RETURN(tenant.weight, ParseWeight(text));
  return absl::OkStatus();
}

absl::Status SetPriority(FunctionConfig& function, std::string_view text) {
  TORPOR_ASSIGN_OR_RETURN(function.priority, ParsePriority(text));
  return absl::OkStatus();
}

absl::Status SetSwapGroupBytes(Config& config, std::string_view text) {
  if (text == "auto") {
    config.swap_group_bytes = 0;
    return absl::OkStatus();
  }
  if (!ParseBytes(text).ok()) {
    return absl::InvalidArgumentError(fmt::format(
        "\"{}\" is not a size; write auto, or a number and a unit, for example 2MiB", text));
  }
  return SetBytes<&Config::swap_group_bytes, 64 * kKiB, kGiB>(config, text);
}

absl::Status SetLogFormat(Config& config, std::string_view text) {
  constexpr std::string_view kFormats[] = {"text", "json"};
  TORPOR_RETURN_IF_ERROR(CheckWord(text, "no log format", kFormats));
  config.log_format = text == "json" ? LogFormat::kJson : LogFormat::kText;
  return absl::OkStatus();
}

absl::Status SetAnonymousFunction(Config& config, std::string_view text) {
  if (text.empty()) return SetText<&Config::anonymous_function>(config, text);
  return SetName<&Config::anonymous_function>(config, text);
}

constexpr bool kIsPath = true;

constexpr Setting<Config> kNodeSettings[] = {
    {"run_dir", "DIR", "/run/torpor", "Folder of the sockets", kIsPath, SetText<&Config::run_dir>},
    {"state_dir", "DIR", "/var/lib/torpor", "Folder of what is kept: modules", kIsPath,
     SetText<&Config::state_dir>},
    {"client_socket", "PATH", "", "Socket of the functions; empty: torpor.sock in run_dir", kIsPath,
     SetText<&Config::client_socket>},
    {"admin_socket", "PATH", "", "Socket of torporctl; empty: admin.sock in run_dir", kIsPath,
     SetText<&Config::admin_socket>},
    {"socket_mode", "MODE", "0660", "Octal mode of the sockets that functions use", false,
     SetSocketMode},
    {"http_address", "HOST:PORT", "0.0.0.0:8000",
     "Where the router listens; port 0: any; empty: no router", false,
     SetAddress<&Config::http_address, true>},
    {"metrics_address", "HOST:PORT", "0.0.0.0:8002",
     "Where /metrics is; port 0: any; empty: nowhere", false,
     SetAddress<&Config::metrics_address, true>},
    {"cuda_library_dir", "DIR", "",
     "Folder of libcuda.so.1 and libcublas.so.13; empty: NVIDIA's where there is a GPU, else the "
     "emulator's",
     kIsPath, SetText<&Config::cuda_library_dir>},
    {"emulator_topology", "FILE", "",
     "The emulated node, or the name of a preset (docs/emulator.md)", kIsPath,
     SetText<&Config::emulator_topology>},
    {"gpus", "LIST", "", "Indices of the GPUs to serve, as 0,1; empty: all", false, SetGpus},
    {"driver_reserve", "SIZE", "1GiB", "Device memory left to the driver", false,
     SetBytes<&Config::driver_reserve, 0>},
    {"chunk_bytes", "SIZE", "2MiB", "Unit in which images occupy device memory", false,
     SetMultiple<&Config::chunk_bytes, kChunkUnit>},
    {"swap_from_peers", "BOOL", "true",
     "Images come from another GPU's copy where that is faster than from the host", false,
     SetFlag<&Config::swap_from_peers>},
    {"swap_pinned", "BOOL", "true", "Images are pinned for copies", false,
     SetFlag<&Config::swap_pinned>},
    {"swap_pipeline", "WHAT", "group",
     "What is copied and waited for by itself when an image comes: none, parameter or group", false,
     SetWord<&Config::swap_pipeline, kSwapPipeline>},
    {"swap_group_bytes", "SIZE", "auto", "Size of a group; auto: as each GPU's link is measured",
     false, SetSwapGroupBytes},
    {"swap_wait", "WHAT", "allocation",
     "What a kernel's pointers make it wait for: allocation or range", false,
     SetWord<&Config::swap_wait, kSwapWait>},
    {"idle_write_back", "DURATION", "1s",
     "Idle GPUs write back what they changed after this time; off: never", false,
     SetDurationOrOff<&Config::idle_write_back>},
    {"window_bytes", "SIZE", "16MiB", "Memory that a session shares with the daemon", false,
     SetBytes<&Config::window_bytes, kMiB, kGiB>},
    {"address_range", "SIZE", "64GiB", "Least range of device addresses of a session", false,
     SetMultiple<&Config::address_range, kGiB>},
    {"address_base", "ADDRESS", "0x200000000000", "Where the sessions' device addresses begin",
     false, SetAddressBase},
    {"address_mode", "MODE", "map", "How device addresses are kept: map or translate", false,
     SetWord<&Config::address_mode, kAddressMode>},
    {"partition_sizes", "LIST", "auto",
     "Slots in the arena's partitions with translate, as 2MiB,20MiB; none; auto: these two", false,
     SetPartitionSizes},
    {"policy", "NAME", "torpor", "Who runs next, where, and what is evicted: a scheduling policy",
     false, SetPolicy},
    {"max_waiting", "COUNT", "0", "Requests that may wait for a GPU at one time; 0: any number",
     false, SetLimit<&Config::max_waiting>},
    {"too_late", "WHAT", "auto",
     "Requests that can no longer meet their deadline: serve, serve-last or refuse; auto: as the "
     "policy has it",
     false, SetWord<&Config::too_late, kTooLate>},
    {"event_log", "FILE", "",
     "Gets what the scheduler is told and decides, for torpor-sim replay; empty: nothing does",
     kIsPath, SetText<&Config::event_log>},
    {"event_log_bytes", "SIZE", "1GiB", "The event log ends there", false,
     SetBytes<&Config::event_log_bytes, kMiB>},
    {"anonymous_function", "NAME", "",
     "Function of sessions without a token; empty: they are refused", false, SetAnonymousFunction},
    {"drain_timeout", "DURATION", "30s", "At shutdown requests may take this long to end", false,
     SetDuration<&Config::drain_timeout>},
    {"queue_timeout", "DURATION", "30s", "A request waits at most this long for a GPU", false,
     SetDuration<&Config::queue_timeout>},
    {"header_timeout", "DURATION", "10s", "A request's header must be complete after this time",
     false, SetDuration<&Config::header_timeout>},
    {"idle_timeout", "DURATION", "75s", "An unused client connection is closed after this time",
     false, SetDuration<&Config::idle_timeout>},
    {"client_timeout", "DURATION", "30s", "A client may stall this long within a body", false,
     SetDuration<&Config::client_timeout>},
    {"max_connections", "COUNT", "4096", "Client connections at one time", false,
     SetCount<&Config::max_connections, 1'000'000>},
    {"max_header_bytes", "SIZE", "32KiB", "Size of a request's header", false,
     SetBytes<&Config::max_header_bytes, kKiB, 16 * kMiB>},
    {"max_body_bytes", "SIZE", "0", "Size of a request's body; 0: any", false,
     SetBytes<&Config::max_body_bytes, 0>},
    {"request_buffer_bytes", "SIZE", "1MiB",
     "Part of a body that is read before a GPU is asked for", false,
     SetBytes<&Config::request_buffer_bytes, 4 * kKiB, kGiB>},
    {"response_buffer_bytes", "SIZE", "4MiB", "Part of an answer that is held for a slow client",
     false, SetBytes<&Config::response_buffer_bytes, 4 * kKiB, kGiB>},
    {"log_level", "LEVEL", "info", "trace, debug, info, warn, error or off", false,
     SetWord<&Config::log_level, kLogLevel>},
    {"log_format", "FORMAT", "text", "text or json", false, SetLogFormat},
};

constexpr Setting<TenantConfig> kTenantSettings[] = {
    {"name", "NAME", "", "Its name, as functions give it", false, SetName<&TenantConfig::name>},
    {"weight", "NUMBER", "1", "Tenants that wait share the GPUs' time by it", false, SetWeight},
};

constexpr std::string_view kChangeable[] = {"deadline", "percentile", "priority", "max_waiting",
                                            "keep_alive"};

constexpr Setting<FunctionConfig> kFunctionSettings[] = {
    {"name", "NAME", "", "Its name, as in /function/NAME/", false, SetName<&FunctionConfig::name>},
    {"upstream", "HOST:PORT", "", "Its own HTTP server", false,
     SetAddress<&FunctionConfig::upstream, true>},
    {"memory_limit", "SIZE", "", "GPU memory that it may allocate; 0: all that a GPU offers", false,
     SetBytes<&FunctionConfig::memory_limit, 0>},
    {"deadline", "DURATION", "1s", "Objective for a request's latency", false,
     SetDuration<&FunctionConfig::deadline>},
    {"percentile", "SHARE", "0.98", "Share of its requests that are to meet the deadline", false,
     SetPercentile},
    {"priority", "NUMBER", "0", "Requests of a higher one go first", false, SetPriority},
    {"max_waiting", "COUNT", "0", "Its requests that may wait at one time; 0: any number", false,
     SetLimit<&FunctionConfig::max_waiting>},
    {"keep_alive", "DURATION", "off", "So long after its last use its memory leaves the GPUs",
     false, SetDurationOrOff<&FunctionConfig::keep_alive>},
    {"upstream_timeout", "DURATION", "60s", "Its answer takes at most this long", false,
     SetDuration<&FunctionConfig::upstream_timeout>},
    {"token_file", "FILE", "", "Holds the secret by which its sessions are known", kIsPath,
     SetText<&FunctionConfig::token_file>},
    {"max_in_flight", "COUNT", "1", "Requests that it serves at one time", false,
     SetCount<&FunctionConfig::max_in_flight, 1024>},
    {"gpus", "COUNT", "1", "GPUs that it sees, and holds at one time", false,
     SetCount<&FunctionConfig::gpus, wire::kMaxDevices>},
    {"keeps_state", "BOOL", "false", "It gathers state in GPU memory from one request to the next",
     false, SetFlag<&FunctionConfig::keeps_state>},
    {"stateless", "BOOL", "false", "What its requests change in GPU memory may be forgotten", false,
     SetFlag<&FunctionConfig::is_stateless>},
    {"tenant", "NAME", "default", "Who pays for it: a label in the metrics", false,
     SetName<&FunctionConfig::tenant>},
};

}  // namespace

std::span<const Setting<Config>> NodeSettings() { return kNodeSettings; }
std::span<const Setting<TenantConfig>> TenantSettings() { return kTenantSettings; }
std::span<const Setting<FunctionConfig>> FunctionSettings() { return kFunctionSettings; }

std::span<const std::string_view> ChangeableSettings() { return kChangeable; }

absl::Status ChangeFunction(FunctionConfig& function, std::span<const SettingText> changes) {
  FunctionConfig changed = function;
  for (const auto& [key, text] : changes) {
    if (std::ranges::find(kChangeable, key) == std::ranges::end(kChangeable)) {
      return absl::InvalidArgumentError(fmt::format(
          "{} cannot be changed while torpord runs; {} can", key, fmt::join(kChangeable, ", ")));
    }
    const auto setting = std::ranges::find(kFunctionSettings, key, &Setting<FunctionConfig>::key);
    if (const absl::Status status = setting->set(changed, text); !status.ok()) {
      return absl::InvalidArgumentError(fmt::format("{}: {}", key, std::string(status.message())));
    }
  }
  function = std::move(changed);
  return absl::OkStatus();
}

std::string EnvironmentName(std::string_view key) {
  std::string name = "TORPOR_";
  for (const char c : key) name += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return name;
}

std::string FlagName(std::string_view key) {
  std::string name = fmt::format("--{}", key);
  std::ranges::replace(name, '_', '-');
  return name;
}

}  // namespace torpor::server

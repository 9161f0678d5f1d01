#include "server/config/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "proto/wire/control_messages.h"
#include "scheduler/events.h"
#include "server/config/config_kinds.h"
#include "server/config/setting_values.h"
#include "server/settings/value_kinds.h"

namespace torpor::server {
namespace {

static_assert(wire::kMaxDevices == 1 + scheduler::kMaxSecondaryShards,
              "a function may have as many GPUs as its program can see");

constexpr CountKind kSessionCount{.min = 1, .max = 65'536};

const Settings<SessionConfig>& SessionSettings() {
  using Target = SessionConfig;
  static const Settings<Target> table = {
      MakeSetting("window_bytes", SizeKind{.min = kMiB, .max = kGiB}, &Target::window_bytes,
                  "Memory that a session shares with the daemon"),
      MakeSetting("address_range", MultipleKind{.unit = kGiB}, &Target::address_range,
                  "Device addresses that a session may have; more if its memory_limit needs more"),
      MakeSetting("max_sessions", kSessionCount, &Target::max_sessions,
                  "Maximum of sessions of all functions, one a process and GPU"),
      MakeSetting("anonymous_function", NameKind{.may_be_empty = true}, &Target::anonymous_function,
                  "Function of sessions without a token; empty: they are refused"),
      MakeSetting("resume_patience", DurationKind(), &Target::resume_patience,
                  "How long a new torpord waits for the processes of an earlier one's sessions"),
  };
  return table;
}

const Settings<AddressConfig>& AddressSettings() {
  using Target = AddressConfig;
  static const Settings<Target> table = {
      MakeSetting("address_base", AddressBaseKind(), &Target::base,
                  "Where the node's addresses for sessions begin, if the driver agrees"),
      MakeSetting("address_space", MultipleKind{.unit = kMinNodeAddresses}, &Target::space,
                  "Device addresses to set aside for all sessions; half as much, and so on down to "
                  "1TiB, if the driver refuses"),
  };
  return table;
}

Settings<SchedulingConfig> MakeSchedulingSettings() {
  using Target = SchedulingConfig;
  Settings<Target> table = {
      MakeSetting("policy", PolicyKind(), &Target::policy,
                  "Scheduling policy: who runs next, where, and what is evicted"),
      MakeSetting("max_waiting", LimitKind(), &Target::max_waiting,
                  "Maximum of requests that wait for a GPU; 0: any number"),
      MakeSetting("too_late", ChoiceKind<LateRequests>(), &Target::too_late,
                  "What happens to requests that cannot meet their deadline any more; auto: as the "
                  "policy has it"),
      MakeSetting("swap_from_peers", FlagKind(), &Target::swap_from_peers,
                  "Copy images from another GPU if that is faster than from the host"),
      MakeSetting("keep_replicas", FlagKind(), &Target::keep_replicas,
                  "Leave a copy of an image where it was when another GPU fetches it"),
      MakeSetting("idle_write_back", DurationOrOffKind(), &Target::idle_write_back,
                  "Idle time after which a GPU writes changes back to the host; off: never"),
      MakeSetting("event_log", PathKind{{"FILE"}}, &Target::event_log,
                  "File for the scheduler's events and decisions, for torpor-sim replay; empty: "
                  "none"),
      MakeSetting("event_log_bytes", SizeKind{.min = kMiB}, &Target::event_log_bytes,
                  "Size at which the event log ends"),
  };
  AddSettingsOf(table, &Target::constants, PolicySettings());
  return table;
}

const Settings<SchedulingConfig>& SchedulingSettings() {
  static const Settings<SchedulingConfig> table = MakeSchedulingSettings();
  return table;
}

Settings<Config> MakeNodeSettings() {
  using Target = Config;
  Settings<Target> table = {
      MakeSetting("run_dir", PathKind{{"DIR"}}, &Target::run_dir, "Folder of the sockets"),
      MakeSetting("state_dir", PathKind{{"DIR"}}, &Target::state_dir,
                  "Folder of modules and of measurements of links, kept over restarts"),
      MakeSetting("client_socket", PathKind{{"PATH"}}, &Target::client_socket,
                  "Socket of the functions; empty: functions/torpor.sock in run_dir"),
      MakeSetting("admin_socket", PathKind{{"PATH"}}, &Target::admin_socket,
                  "Socket of torporctl; empty: admin/admin.sock in run_dir"),
      MakeSetting(
          "socket_group", TextKind{}, &Target::socket_group,
          "Group that alone reaches the sockets of functions; empty: everybody, who shows a "
          "token then"),
      MakeSetting("admin_group", TextKind{}, &Target::admin_group,
                  "Group that reaches the admin socket; empty: torpord's own"),
      MakeSetting("socket_mode", FileModeKind(), &Target::socket_mode,
                  "Octal mode of the sockets that functions use"),
      MakeSetting("cuda_library_dir", PathKind{{"DIR"}}, &Target::cuda_library_dir,
                  "Folder of libcuda.so.1 and libcublas.so.13; empty: NVIDIA's if there is a GPU, "
                  "else the emulator's"),
      MakeSetting("emulator_topology", PathKind{{"FILE"}}, &Target::emulator_topology,
                  "The emulated node, or the name of a preset (docs/emulator.md)"),
      MakeSetting("gpus", IndexListKind(), &Target::gpus,
                  "Indices of the GPUs to serve, as 0,1; empty: all"),
      MakeSetting(
          "isolation", ChoiceKind<Isolation>(), &Target::isolation,
          "Whose functions share a CUDA context on a GPU, and may reach each other's memory"),
      MakeSetting("executors_per_gpu", CountOrAutoKind{.max = kMaxExecutorsPerGpu},
                  &Target::executors_per_gpu,
                  "Executors that serve on a GPU at a time, one an isolation domain; auto: as many "
                  "as there are domains at the start, at most 15"),
      MakeSetting("host_memory", SizeOrShareKind{.min = kMiB}, &Target::host_memory,
                  "Host memory for functions' GPU and pinned memory; a share is of the cgroup's "
                  "limit or the machine's memory"),
      MakeSetting(
          "share_equal_blocks", DurationOrOffKind(), &Target::share_equal_blocks,
          "Time without a change after which GPU memory that equals other GPU memory of the "
          "tenant is stored once in host memory; off: never"),
      MakeSetting("spill_limit", SizeKind{}, &Target::spill_limit,
                  "Disk space for GPU memory of functions that are not in use, when host_memory is "
                  "full; 0: none"),
      MakeSetting("spill_dir", PathKind{{"DIR"}}, &Target::spill_dir,
                  "Folder of such memory; empty: spilled in state_dir"),
  };
  AddSettingsOf(table, &Target::device, DeviceSettingTable());
  AddSettingsOf(table, &Target::addresses, AddressSettings());
  AddSettingsOf(table, &Target::session, SessionSettings());
  AddSettingsOf(table, &Target::scheduling, SchedulingSettings());
  AddSettingsOf(table, &Target::router, RouterSettings());
  AddSettingsOf(table, &Target::log, LogSettingTable());
  table.push_back(MakeSetting("drain_timeout", DurationKind(), &Target::drain_timeout,
                              "Maximum time for running requests at shutdown"));
  return table;
}

// Sets keys of `table`. On an error, `target` stays as it was.
template <typename Target>
absl::Status SetAll(const Settings<Target>& table, std::span<const SettingText> settings,
                    Target& target) {
  Target changed = target;
  for (const auto& [key, text] : settings) {
    const Setting<Target>* const setting = FindSetting(table, key);
    if (setting == nullptr) {
      std::vector<std::string_view> known;
      for (const auto& one : table) known.push_back(one.key);
      const std::string_view nearest = NearestName(key, known);
      return absl::InvalidArgumentError(
          nearest.empty() ? fmt::format("{}: no such setting; see docs/configuration.md", key)
                          : fmt::format("{}: no such setting; did you mean {}?", key, nearest));
    }
    if (const absl::Status status = setting->set(changed, text); !status.ok()) {
      return absl::InvalidArgumentError(fmt::format("{}: {}", key, std::string(status.message())));
    }
  }
  target = std::move(changed);
  return absl::OkStatus();
}

}  // namespace

const Settings<RouterConfig>& RouterSettings() {
  using Target = RouterConfig;
  static const Settings<Target> table = {
      MakeSetting("http_address", AddressKind(), &Target::http_address,
                  "Where the router listens; port 0: any; empty: no router"),
      MakeSetting("metrics_address", AddressKind(), &Target::metrics_address,
                  "Where /metrics is; port 0: any; empty: nowhere"),
      MakeSetting("queue_timeout", DurationKind(), &Target::queue_timeout,
                  "Maximum wait of a request for a GPU"),
      MakeSetting("header_timeout", DurationKind(), &Target::header_timeout,
                  "Time within which a request's header must be complete"),
      MakeSetting("idle_timeout", DurationKind(), &Target::idle_timeout,
                  "Time after which an unused client connection is closed"),
      MakeSetting("client_timeout", DurationKind(), &Target::client_timeout,
                  "Maximum stall of a client within a body"),
      MakeSetting("max_connections", CountKind{.min = 1, .max = 1'000'000},
                  &Target::max_connections, "Maximum of client connections at one time"),
      MakeSetting("max_header_bytes", SizeKind{.min = kKiB, .max = 16 * kMiB},
                  &Target::max_header_bytes, "Maximum size of a request's header"),
      MakeSetting("max_body_bytes", SizeKind(), &Target::max_body_bytes,
                  "Maximum size of a request's body; 0: any"),
      MakeSetting("request_memory", SizeKind{.min = kMiB}, &Target::request_memory,
                  "Memory for bodies of all requests; what does not fit goes to the disk"),
      MakeSetting("spool_limit", SizeKind{}, &Target::spool_limit,
                  "Disk space for bodies of requests; beyond that requests are refused"),
      MakeSetting("spool_dir", PathKind{{"DIR"}}, &Target::spool_dir,
                  "Folder of such bodies; empty: spool in state_dir"),
      MakeSetting("request_buffer_bytes", SizeKind{.min = 4 * kKiB, .max = kGiB},
                  &Target::request_buffer_bytes,
                  "Part of a request's body that is kept in memory; the rest goes to the disk"),
      MakeSetting("response_buffer_bytes", SizeKind{.min = 4 * kKiB, .max = kGiB},
                  &Target::response_buffer_bytes,
                  "Part of an answer that is held for a slow client"),
  };
  return table;
}

const Settings<Config>& NodeSettings() {
  static const Settings<Config> table = MakeNodeSettings();
  return table;
}

const Settings<scheduler::PolicyConstants>& PolicySettings() {
  using Target = scheduler::PolicyConstants;
  static const Settings<Target> table = {
      MakeSetting("alpha_start", RealKind{.min = 0, .max = 1}, &Target::alpha_start,
                  "Share of the required requests whose functions go first, at the start"),
      MakeSetting("alpha_period", DurationKind{.min = scheduler::kMinAlphaPeriod},
                  &Target::alpha_period, "Time after which that share adapts"),
      MakeSetting("heavy_ratio", RealKind{.min = 1, .max = scheduler::kMaxHeavyRatio},
                  &Target::heavy_ratio,
                  "A function is heavy if a swap-in makes its run so many times as long"),
      MakeSetting("outcome_window", DurationKind{.min = scheduler::kMinOutcomeWindow},
                  &Target::outcome_window, "How long the outcome of a request counts"),
  };
  return table;
}

const Settings<TenantConfig>& TenantSettings() {
  using Target = TenantConfig;
  static const Settings<Target> table = {
      Required(MakeSetting("name", NameKind(), &Target::name, "Name, as functions give it")),
      MakeSetting("weight", WeightKind(), &Target::weight,
                  "Waiting tenants share the GPUs' time in proportion to their weights"),
      MakeSetting("max_sessions", kSessionCount, &Target::max_sessions,
                  "Maximum of sessions of all its functions"),
  };
  return table;
}

const Settings<FunctionConfig>& FunctionSettings() {
  using Target = FunctionConfig;
  static const Settings<Target> table = {
      Required(MakeSetting("name", NameKind(), &Target::name, "Name, as in /function/NAME/")),
      MakeSetting("upstream", AddressKind(), &Target::upstream,
                  "Address of the function's own HTTP server"),
      Required(MakeSetting("memory_limit", SizeKind(), &Target::memory_limit,
                           "GPU memory that it may allocate; 0: all that a GPU offers")),
      MakeSetting("pinned_limit", SizeOrAutoKind{}, &Target::pinned_limit,
                  "Pinned host memory that it may allocate; auto: as much as GPU memory, and at "
                  "least 256MiB"),
      MakeSetting("max_sessions", kSessionCount, &Target::max_sessions,
                  "Maximum of sessions of an instance, one a process and GPU"),
      MakeSetting("deadline", DurationKind(), &Target::deadline,
                  "Objective for a request's latency"),
      MakeSetting("percentile", PercentileKind(), &Target::percentile,
                  "Share of its requests that are to meet the deadline"),
      MakeSetting("priority", PriorityKind(), &Target::priority,
                  "Requests of a higher priority run first"),
      MakeSetting("max_waiting", LimitKind(), &Target::max_waiting,
                  "Maximum of its requests that wait at one time; 0: any number"),
      MakeSetting("keep_alive", DurationOrOffKind(), &Target::keep_alive,
                  "Unused for this time, its memory leaves the GPUs; off: only to make room"),
      MakeSetting("upstream_timeout", DurationKind(), &Target::upstream_timeout,
                  "Maximum time for its answer"),
      MakeSetting("run_limit", DurationOrOffKind(), &Target::run_limit,
                  "Maximum time for which a request holds a GPU; off: as upstream_timeout"),
      MakeSetting("token_file", PathKind{{"FILE"}}, &Target::token_file,
                  "File with the secret that its sessions show"),
      MakeSetting("command", WordsKind{}, &Target::command,
                  "Program that torpord keeps running, and its arguments; empty: none"),
      MakeSetting("env", WordsKind{}, &Target::environment,
                  "NAME=value of the command's environment"),
      MakeSetting("user", UserKind{}, &Target::user, "User, and group, as which the command runs"),
      MakeSetting("stop_grace", DurationKind(), &Target::stop_grace,
                  "Time from SIGTERM for the command to SIGKILL"),
      MakeSetting("max_in_flight", CountKind{.min = 1, .max = 1024}, &Target::max_in_flight,
                  "Requests that an instance serves at one time"),
      MakeSetting("gpus", CountKind{.min = 1, .max = wire::kMaxDevices}, &Target::gpus,
                  "GPUs that it sees, and holds at one time"),
      MakeSetting("durability", ChoiceKind<Durability>(), &Target::durability,
                  "What becomes of its GPU memory when an executor dies"),
      MakeSetting("second_tries", FlagKind(), &Target::second_tries,
                  "A request that an instance breaks off may be given to another"),
      MakeSetting("stateless", FlagKind(), &Target::is_stateless,
                  "Changes by its requests in GPU memory may be forgotten"),
      MakeSetting("tenant", NameKind(), &Target::tenant, "Who pays: a label in the metrics"),
      MakeSetting("isolation", ChoiceKind<FunctionIsolation>(), &Target::isolation,
                  "Whose kernels may reach its memory; node: as the node's isolation says"),
  };
  return table;
}

const Settings<InstanceConfig>& InstanceSettings() {
  using Target = InstanceConfig;
  static const Settings<Target> table = {
      Required(MakeSetting("name", NameKind(), &Target::name, "Name, as in FUNCTION/NAME")),
      MakeSetting("upstream", AddressKind(), &Target::upstream, "Address of its own HTTP server"),
      Required(MakeSetting("token_file", PathKind{{"FILE"}}, &Target::token_file,
                           "File with the secret that its sessions show")),
      MakeSetting("command", WordsKind{}, &Target::command,
                  "Program that torpord keeps running, and its arguments; empty: the function's"),
      MakeSetting("env", WordsKind{}, &Target::environment,
                  "NAME=value of the command's environment, beside the function's"),
  };
  return table;
}

absl::Status SetFunction(FunctionConfig& function, std::span<const SettingText> settings) {
  return SetAll(FunctionSettings(), settings, function);
}

absl::Status SetInstance(InstanceConfig& instance, std::span<const SettingText> settings) {
  return SetAll(InstanceSettings(), settings, instance);
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

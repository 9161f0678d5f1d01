#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "scheduler/policy_constants.h"
#include "server/settings/device_settings.h"
#include "server/settings/log_settings.h"
#include "server/settings/node_addresses.h"
#include "server/settings/value_kinds.h"

// The configuration of torpord as plain records. docs/configuration.md explains every field;
// server/config/settings.h has the keys.
namespace torpor::server {

// What becomes of a function's GPU memory when the GPU's executor dies.
enum class Durability {
  // Calls since the last write-back are replayed on another executor (docs/decisions/0038); where
  // that is impossible, the function's process gets a sticky error.
  kEviction,
  // As kEviction, and a request's reply is released once the host's image has the request's work
  // (docs/decisions/0045).
  kRequest,
  // Changes since the last write-back are lost, and later requests go on without.
  kNone,
};
template <>
inline constexpr auto kWordsOf<Durability> =
    std::to_array<Word<Durability>>({{Durability::kEviction, "eviction"},
                                     {Durability::kRequest, "request"},
                                     {Durability::kNone, "none"}});

// Whose sessions share executors, and with that a CUDA context (docs/security.md).
enum class Isolation {
  kShared,    // everybody's: for functions that trust each other
  kTenant,    // those of a tenant's functions
  kFunction,  // those of a function
};
template <>
inline constexpr auto kWordsOf<Isolation> =
    std::to_array<Word<Isolation>>({{Isolation::kShared, "shared"},
                                    {Isolation::kTenant, "tenant"},
                                    {Isolation::kFunction, "function"}});

// A function's own choice.
enum class FunctionIsolation { kAsNode, kShared, kTenant, kFunction };
template <>
inline constexpr auto kWordsOf<FunctionIsolation> =
    std::to_array<Word<FunctionIsolation>>({{FunctionIsolation::kAsNode, "node"},
                                            {FunctionIsolation::kShared, "shared"},
                                            {FunctionIsolation::kTenant, "tenant"},
                                            {FunctionIsolation::kFunction, "function"}});

// A running program of a function, with a server, sessions and GPU memory of its own.
struct InstanceConfig {
  std::string name;        // as a function's, unique in the function
  std::string upstream;    // host:port of the HTTP server; empty: no requests
  std::string token_file;  // holds the secret that its sessions show
  // The program for torpord to start, an absolute path and arguments; empty: torpord starts none.
  // Then NAME=value of the program's environment.
  std::vector<std::string> command{};
  std::vector<std::string> environment{};

  bool operator==(const InstanceConfig&) const = default;
};

// A function as the operator registers it.
struct FunctionConfig {
  std::string name;        // [a-z0-9]([-a-z0-9]*[a-z0-9])?, at most 63 characters
  std::string upstream;    // host:port of the function's own HTTP server; empty: no requests
  Bytes memory_limit = 0;  // GPU memory that an instance may allocate; 0: all that a GPU offers
  // Pinned host memory that an instance may allocate; 0: as memory_limit on all of its GPUs, and
  // at least 256 MiB.
  Bytes pinned_limit = 0;
  int max_sessions = 64;  // of an instance: one a process and GPU
  // The objective: `percentile` of the requests, in (0, 1), are answered within `deadline`.
  Duration deadline{std::chrono::seconds(1)};
  double percentile = 0.98;
  int priority = 0;       // requests of a higher priority run first
  int max_waiting = 0;    // maximum of waiting requests, others are refused; 0: no maximum
  Duration keep_alive{};  // unused for so long, its memory leaves the GPUs; 0: only to make room
  // Maximum from a request's grant to the end of the upstream's answer.
  Duration upstream_timeout{std::chrono::seconds(60)};
  // A request holds a GPU at most this long: see held_at_most(). 0: as upstream_timeout.
  Duration run_limit{};
  std::string token_file;  // holds the secret that its sessions show
  // As in InstanceConfig, for instances without a command, and for all.
  std::vector<std::string> command;
  std::vector<std::string> environment;
  std::string user;  // NAME or NAME:GROUP, as whom the command runs; empty: as torpord's own
  Duration stop_grace{std::chrono::seconds(10)};  // from SIGTERM for the command to SIGKILL
  // By name. Empty: one instance, of the function's name, with `upstream` and `token_file`.
  std::map<std::string, InstanceConfig> instances;
  int max_in_flight = 1;           // requests that an instance serves at one time
  int gpus = 1;                    // GPUs that an instance sees, and holds at one time
  bool second_tries = true;        // what an instance breaks off may go to another one
  bool is_stateless = false;       // an eviction may forget what requests changed in GPU memory
  std::string tenant = "default";  // who pays: a label in the metrics, and a TenantConfig's name
  FunctionIsolation isolation = FunctionIsolation::kAsNode;
  Durability durability = Durability::kEviction;  // see survives()

  // From a request's grant until the router gives up, and takes the GPU away.
  Duration held_at_most() const {
    return run_limit == Duration::zero() ? upstream_timeout : std::min(run_limit, upstream_timeout);
  }
  // Whether its memory must survive the death of an executor.
  bool survives() const { return durability != Durability::kNone && !is_stateless; }
  // Whether replies wait until their requests' work is in host memory.
  bool saves_requests() const { return durability == Durability::kRequest && !is_stateless; }

  bool operator==(const FunctionConfig&) const = default;
};

// Returns the function's isolation on a node with `of_node`.
Isolation IsolationOf(const FunctionConfig& function, Isolation of_node);
// Returns the function's instances by name, at least one, each with what it has of the function.
std::vector<InstanceConfig> InstancesOf(const FunctionConfig& function);
// Returns the instance's name in messages and commands: digits, or digits/a of an instance in the
// function's list.
std::string FullNameOf(const FunctionConfig& function, const InstanceConfig& instance);

// A customer. Tenants' functions share the GPUs.
struct TenantConfig {
  std::string name;         // as in FunctionConfig::tenant
  double weight = 1;        // waiting tenants share the GPUs' time in proportion to their weights
  int max_sessions = 1024;  // of all its functions together

  bool operator==(const TenantConfig&) const = default;
};

// The treatment of a request that cannot meet its deadline any more.
enum class LateRequests {
  kAsPolicy,   // as the scheduling policy has it
  kServe,      // served in turn
  kServeLast,  // served while no request waits that can meet its deadline
  kRefuse,
};
template <>
inline constexpr auto kWordsOf<LateRequests> =
    std::to_array<Word<LateRequests>>({{LateRequests::kAsPolicy, "auto"},
                                       {LateRequests::kServe, "serve"},
                                       {LateRequests::kServeLast, "serve-last"},
                                       {LateRequests::kRefuse, "refuse"}});

// The addresses that the node sets aside for all sessions.
struct AddressConfig {
  std::uint64_t base = 0x2000'0000'0000;  // where the first try is
  Bytes space = kGiB * 16 * 1024;         // of GPU addresses; as much of host addresses
  // Not settings: what torpord has found at start, and why it does not map as configured.
  NodeAddresses found;
  std::string fallback;

  bool operator==(const AddressConfig&) const = default;
};

// What every session of a function gets.
struct SessionConfig {
  Bytes window_bytes = 16 * kMiB;   // window that client and executor share
  Bytes address_range = 64 * kGiB;  // device addresses that a session may have, or more if needed
  int max_sessions = 4096;          // of all functions
  // Sessions without a token belong to the function of this name; empty: they are refused.
  std::string anonymous_function;
  // How long a torpord that is started again waits for the processes of its predecessor's sessions.
  Duration resume_patience{std::chrono::seconds(60)};

  bool operator==(const SessionConfig&) const = default;
};

struct SchedulingConfig {
  std::string policy = "torpor";  // a name of scheduler::SetupNames, of a policy that evicts
  int max_waiting = 0;            // maximum of waiting requests of all functions; 0: no maximum
  LateRequests too_late = LateRequests::kAsPolicy;
  bool swap_from_peers = true;  // images come from another GPU's copy if that is faster
  bool keep_replicas = true;    // an image that another GPU fetches stays where it was, too
  // A GPU idle for so long writes changes back to host memory; 0: only when images leave.
  Duration idle_write_back{std::chrono::seconds(1)};
  scheduler::PolicyConstants constants;
  std::string event_log;             // file of the scheduler's events and decisions; empty: none
  Bytes event_log_bytes = 1 * kGiB;  // the event log ends at this size

  bool operator==(const SchedulingConfig&) const = default;
};

struct RouterConfig {
  std::string http_address = "0.0.0.0:8000";          // port 0: any free port; empty: no router
  std::string metrics_address = "0.0.0.0:8002";       // likewise, for /metrics
  Duration queue_timeout{std::chrono::seconds(30)};   // maximum wait of a request for a GPU
  Duration header_timeout{std::chrono::seconds(10)};  // for a request's header, from its first byte
  Duration idle_timeout{std::chrono::seconds(75)};    // of a kept-alive client connection
  Duration client_timeout{std::chrono::seconds(30)};  // maximum stall of a client in a body
  int max_connections = 4096;                         // of clients, at one time
  Bytes max_header_bytes = 32 * kKiB;
  Bytes max_body_bytes = 0;                // of a request; 0: no maximum
  Bytes request_buffer_bytes = 1 * kMiB;   // of a request's body in memory; the rest is on the disk
  Bytes request_memory = 256 * kMiB;       // for bodies of all requests
  Bytes spool_limit = 16 * kGiB;           // of bodies on the disk
  std::string spool_dir{};                 // default <state_dir>/spool
  Bytes response_buffer_bytes = 4 * kMiB;  // of an answer, held for a slow client without a GPU

  bool operator==(const RouterConfig&) const = default;
};

// Bounds of Config::executors_per_gpu, and of what is chosen without being asked.
inline constexpr int kMaxExecutorsPerGpu = 64;
inline constexpr int kMaxExecutorsUnasked = 15;

struct Config {
  std::string run_dir = "/run/torpor";        // sockets
  std::string state_dir = "/var/lib/torpor";  // modules and profiles of links
  std::string client_socket;                  // default <run_dir>/functions/torpor.sock
  std::string admin_socket;                   // default <run_dir>/admin/admin.sock
  unsigned socket_mode = 0666;                // of the sockets that functions use
  std::string socket_group;                   // that reaches these alone; empty: everybody does
  std::string admin_group;                    // that reaches the admin socket; empty: torpord's own
  // Folder of libcuda.so.1 and libcublas.so.13. Empty: NVIDIA's if there is a GPU, else the
  // emulator's beside the program.
  std::string cuda_library_dir;
  bool is_emulated = false;       // not a setting: whether cuda_library_dir is the emulator's
  std::string emulator_topology;  // path of the emulated node's YAML; empty: none
  std::vector<int> gpus;          // indices to serve; empty: all
  Isolation isolation = Isolation::kTenant;  // of functions that choose none
  int executors_per_gpu = 0;                 // at most; 0: see ExecutorsPerGpu
  SizeOrShare host_memory{.percent = 80};    // that sessions may take; a share: of what may be had
  // Equal blocks of a tenant's images are stored once, of images without a change for so long; 0:
  // never.
  Duration share_equal_blocks{std::chrono::seconds(5)};
  Bytes spill_limit = 0;  // of images on the disk; 0: none leaves host memory
  std::string spill_dir;  // default <state_dir>/spilled
  DeviceSettings device;
  AddressConfig addresses;
  SessionConfig session;
  SchedulingConfig scheduling;
  RouterConfig router;
  LogSettings log;
  Duration drain_timeout{std::chrono::seconds(30)};  // for running requests at shutdown
  std::map<std::string, TenantConfig> tenants;       // empty: functions' tenants are labels only
  std::map<std::string, FunctionConfig> functions;

  bool operator==(const Config&) const = default;
};

// Returns how many executors may serve on a GPU at a time, each an isolation domain of its own: as
// configured or, by default, as many as the functions have domains, at most
// kMaxExecutorsUnasked. 1 where the GPU's memory has no owner that several could share.
int ExecutorsPerGpu(const Config& config);
// Whether a GPU's memory belongs to a process of its own, which several executors share.
bool HasPoolOwners(const Config& config);

// Return the folders, within run_dir, of the sockets that functions use and of the admin socket,
// unless these are elsewhere by name; and of what executors share with each other.
std::string GpuFolderOf(const Config& config);
std::string FunctionFolderOf(const Config& config);
std::string AdminFolderOf(const Config& config);

// Returns the node's addresses: those found at start or, before, those that are tried first.
NodeAddresses AddressesOf(const Config& config);

}  // namespace torpor::server

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/units.h"

namespace torpor::server {

// One function as the operator registers it.
struct FunctionConfig {
  std::string name;        // [a-z0-9]([-a-z0-9]*[a-z0-9])?, at most 63 characters
  std::string upstream;    // host:port of the function's own HTTP server; empty: no requests
  Bytes memory_limit = 0;  // GPU memory that it may allocate; 0: all that a GPU offers
  // Its objective: `percentile` of its requests, in (0, 1), are answered within `deadline`.
  Duration deadline{std::chrono::seconds(1)};
  double percentile = 0.98;
  int priority = 0;       // requests of a higher one go first
  int max_waiting = 0;    // further requests are refused; 0: any number
  Duration keep_alive{};  // its memory leaves GPUs so long after its last use; 0: for room only
  // From the grant a request's upstream answer takes at most this long.
  Duration upstream_timeout{std::chrono::seconds(60)};
  std::string token_file;  // the secret by which its sessions are known
  int max_in_flight = 1;
  int gpus = 1;               // that it sees and holds at one time
  bool keeps_state = false;   // in GPU memory, from one request to the next
  bool is_stateless = false;  // what requests change in GPU memory need not outlive an eviction
  std::string tenant = "default";  // who pays for it: a label in the metrics, and see TenantConfig

  bool operator==(const FunctionConfig&) const = default;
};

// Somebody whose functions get a share of the GPUs.
struct TenantConfig {
  std::string name;   // as FunctionConfig's
  double weight = 1;  // tenants that wait share the GPUs' time by it

  bool operator==(const TenantConfig&) const = default;
};

enum class LogFormat { kText, kJson };

// The whole configuration of torpord; docs/configuration.md explains every field.
struct Config {
  std::string run_dir = "/run/torpor";           // sockets
  std::string state_dir = "/var/lib/torpor";     // modules
  std::string client_socket;                     // default <run_dir>/torpor.sock
  std::string admin_socket;                      // default <run_dir>/admin.sock
  unsigned socket_mode = 0660;                   // of the sockets that functions use
  std::string http_address = "0.0.0.0:8000";     // port 0: any free port; empty: no router
  std::string metrics_address = "0.0.0.0:8002";  // likewise
  // Folder of libcuda.so.1 and libcublas.so.13. Empty: NVIDIA's where there is a GPU, else the
  // emulator's beside the program.
  std::string cuda_library_dir;
  bool is_emulated = false;             // no setting: whether that is the emulator's
  std::string emulator_topology;        // path of the emulated node's YAML; empty: none
  std::vector<int> gpus;                // indices to serve; empty: all
  Bytes driver_reserve = 1 * kGiB;      // device memory left to the driver; at most a quarter of it
  Bytes chunk_bytes = 2 * kMiB;         // unit in which images occupy device memory
  bool swap_from_peers = true;          // images come from another GPU's copy where that is faster
  bool swap_pinned = true;              // images are pinned for copies
  std::string swap_pipeline = "group";  // what runs while an image comes: none, parameter, group
  Bytes swap_group_bytes = 0;           // size of a group; 0: as the links are measured
  std::string swap_wait = "allocation";  // that a kernel's pointers make it wait for: or range
  // A GPU that has had nothing to do for so long writes back what it changed; 0: not before images
  // leave it.
  Duration idle_write_back{std::chrono::seconds(1)};
  Bytes window_bytes = 16 * kMiB;   // shared window of a session
  Bytes address_range = 64 * kGiB;  // least range of addresses of a session
  std::uint64_t address_base = 0x2000'0000'0000;
  std::string address_mode = "map";  // how the GPU knows them: or translate
  // With translate: ascending, of the slots in the arena's partitions; nothing: as
  // memory::PartitionSizes has them, where they fit.
  std::optional<std::vector<Bytes>> partition_sizes;
  std::string policy = "torpor";  // a name of scheduler::SetupNames, of those that evict
  int max_waiting = 0;            // requests of all functions; 0: any number
  // Requests that can no longer be answered in time: serve, serve-last, refuse; or auto, as the
  // policy has it.
  std::string too_late = "auto";
  std::string event_log;             // file of the scheduler's events and decisions; empty: none
  Bytes event_log_bytes = 1 * kGiB;  // it ends there
  // Sessions without a token belong to a function of this name; empty: they are refused.
  std::string anonymous_function;
  Duration drain_timeout{std::chrono::seconds(30)};
  // The router. A request waits for a GPU at most `queue_timeout`.
  Duration queue_timeout{std::chrono::seconds(30)};
  Duration header_timeout{std::chrono::seconds(10)};  // for a request's header, from its first byte
  Duration idle_timeout{std::chrono::seconds(75)};    // of a kept-alive client connection
  Duration client_timeout{std::chrono::seconds(30)};  // a client may stall this long in a body
  int max_connections = 4096;                         // of clients, at one time
  Bytes max_header_bytes = 32 * kKiB;
  Bytes max_body_bytes = 0;                // of a request; 0: any
  Bytes request_buffer_bytes = 1 * kMiB;   // read of a request's body before it asks for a GPU
  Bytes response_buffer_bytes = 4 * kMiB;  // of an answer, held for a slow client without a GPU
  std::string log_level = "info";
  LogFormat log_format = LogFormat::kText;
  std::map<std::string, TenantConfig> tenants;  // none: functions' tenants do not matter
  std::map<std::string, FunctionConfig> functions;

  bool operator==(const Config&) const = default;
};

}  // namespace torpor::server

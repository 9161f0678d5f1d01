#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace torpor::truth {

// What became of the same requests on one of the two sides. Milliseconds are the model's.
struct Findings {
  std::uint64_t requests = 0;
  double attainment = 0;  // share of the requests in time
  double compliant = 0;   // functions that kept their objective
  double hit_ratio = 0;   // shares of the requests by where the image was: on the GPU,
  double from_host = 0;
  double from_peer = 0;
  double pcie_gb = 0;  // that came to GPUs
  double nvlink_gb = 0;
  double p50_ms = 0;
  double p98_ms = 0;
  double gpu_load = 0;  // share of the time in which a GPU was leased
};

struct Comparison {
  double load = 0;  // asked for
  double length_s = 0;
  Findings daemon;
  std::vector<Findings> simulator;  // as often as what was measured wavered; at least one
  Findings without_replicas;        // a simulator whose images move: another GPU's copy is dropped
  double lag_p99_ms = 0;            // of the load generator, in real time
  std::string account;              // whether the emulation kept up
  bool is_valid = false;
};

nlohmann::ordered_json ToJson(const Comparison& comparison);

// A heading and a table. A difference is the simulator's, in parts of the daemon's figure.
std::string ToMarkdown(const Comparison& comparison);

}  // namespace torpor::truth

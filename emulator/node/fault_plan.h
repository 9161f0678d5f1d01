#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/units.h"
#include "emulator/node/disk_faults.h"

namespace YAML {
class Node;
}

namespace torpor::emulator {

class DocumentReader;
struct SharedNodeState;
struct Topology;

inline constexpr unsigned kMaxCallFaults = 64;

// Calls of a GPU that are counted.
enum class CallKind {
  kLaunch,      // of kernels
  kCopy,        // copies and fills
  kAllocation,  // of device memory: cuMemAlloc, cuMemCreate
};

enum class CallEffect {
  kKill,  // SIGKILL for the process that makes the call
  kFail,  // an allocation finds no memory
  kEcc,   // the work ends by an uncorrectable ECC error, which ends the context
};

// What the nth call of a kind does, counted over all processes of the node since its start.
struct CallFault {
  unsigned place = 0;  // of the GPU
  CallKind call = CallKind::kLaunch;
  std::uint64_t nth = 1;
  CallEffect effect = CallEffect::kKill;

  friend bool operator==(const CallFault&, const CallFault&) = default;
};

// From when to when, in model time since the node's start, a link has another rate.
struct RateWindow {
  Duration from{};
  Duration to{};
  double factor = 1;  // of its rate; 0: the link stands still

  friend bool operator==(const RateWindow&, const RateWindow&) = default;
};

// A window of a link. A single member of the last three names the link.
struct LinkFault {
  RateWindow window;
  std::optional<unsigned> gpu{};                          // its own PCIe link, by place
  std::optional<unsigned> pcie_switch{};                  // its link to the host, by index
  std::optional<std::pair<unsigned, unsigned>> nvlink{};  // by places

  friend bool operator==(const LinkFault&, const LinkFault&) = default;
};

// The faults that a node is to have. Nothing by default.
struct FaultPlan {
  std::vector<CallFault> calls;
  std::vector<LinkFault> links;
  std::vector<DiskFault> disk;

  friend bool operator==(const FaultPlan&, const FaultPlan&) = default;
};

// Counts a call of the GPU at `place` in what the node's processes share. Returns what the plan has
// for the call.
std::optional<CallEffect> CountCall(const FaultPlan& plan, SharedNodeState& state, CallKind call,
                                    unsigned place);

// Reads `calls`, `links` and `disk` of the mapping `faults` of a topology file, whose GPUs,
// switches and NVLinks are read already.
FaultPlan ReadFaultPlan(const YAML::Node& faults, const Topology& topology, DocumentReader& reader);

// The windows of a link, against the node's clock.
class LinkWindows {
 public:
  LinkWindows() = default;
  LinkWindows(std::vector<RateWindow> windows, TimePoint start, double time_scale)
      : windows_(std::move(windows)), start_(start), time_scale_(time_scale) {}

  // When `size` bytes that begin to cross the link at `begin` are through, at this rate where there
  // is no window.
  TimePoint EndOf(TimePoint begin, Bytes size, double bytes_per_second) const;

 private:
  // The factor at a time, and until when it holds.
  std::pair<double, TimePoint> At(TimePoint time) const;
  TimePoint RealTime(Duration modelled) const;

  std::vector<RateWindow> windows_;
  TimePoint start_{};
  double time_scale_ = 1;
};

}  // namespace torpor::emulator

#include "emulator/node/fault_plan.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include "emulator/node/document_reader.h"
#include "emulator/node/node_state.h"
#include "emulator/node/topology.h"

namespace torpor::emulator {
namespace {

constexpr NumberRange kMilliseconds = {0, 1e9};
constexpr NumberRange kFactor = {0, 1000};
constexpr unsigned kMaxNth = 1'000'000'000;

constexpr std::array<std::pair<std::string_view, CallKind>, 3> kCalls = {
    {{"launch", CallKind::kLaunch},
     {"copy", CallKind::kCopy},
     {"allocation", CallKind::kAllocation}}};
constexpr std::array<std::pair<std::string_view, CallEffect>, 3> kEffects = {
    {{"kill", CallEffect::kKill}, {"fail", CallEffect::kFail}, {"ecc", CallEffect::kEcc}}};

unsigned ReadGpuPlace(const YAML::Node& value, const Topology& topology, DocumentReader& reader) {
  const auto last = static_cast<unsigned>(std::max<std::size_t>(topology.gpus.size(), 1) - 1);
  return reader.Count(value, "a GPU", 0, last);
}

CallFault ReadCall(const YAML::Node& node, const Topology& topology, DocumentReader& reader) {
  CallFault fault;
  if (!reader.CheckKeys(node, {"gpu", "call", "nth", "effect"})) return fault;
  if (node["gpu"]) fault.place = ReadGpuPlace(node["gpu"], topology, reader);
  fault.call = reader.Word(node, "call", kCalls);
  fault.effect = reader.Word(node, "effect", kEffects);
  if (!node["nth"]) {
    reader.Fail(node, "needs 'nth', the number of the call from 1 on");
  } else {
    fault.nth = reader.Count(node["nth"], "nth", 1, kMaxNth);
  }
  const bool is_allocation = fault.call == CallKind::kAllocation;
  if (fault.effect == CallEffect::kFail && !is_allocation) {
    reader.Fail(node, "only an allocation can fail; of a launch or a copy write kill or ecc");
  }
  if (fault.effect == CallEffect::kEcc && is_allocation) {
    reader.Fail(node, "an allocation has no ecc error; write kill or fail");
  }
  return fault;
}

RateWindow ReadWindow(const YAML::Node& node, DocumentReader& reader) {
  const auto milliseconds = [&](const char* key) {
    return Duration(std::llround(reader.Number(node, key, kMilliseconds) * 1e6));
  };
  RateWindow window = {milliseconds("from_ms"), milliseconds("to_ms"),
                       reader.Number(node, "factor", kFactor)};
  if (window.to <= window.from) reader.Fail(node, "to_ms must be later than from_ms");
  return window;
}

std::pair<unsigned, unsigned> ReadNvlink(const YAML::Node& ends, const Topology& topology,
                                         DocumentReader& reader) {
  if (!ends.IsSequence() || ends.size() != 2) {
    reader.Fail(ends, "'gpus' are the two of an NVLink, for example [0, 1]");
    return {0, 0};
  }
  const std::pair<unsigned, unsigned> places = {ReadGpuPlace(ends[0], topology, reader),
                                                ReadGpuPlace(ends[1], topology, reader)};
  if (!reader.failed() && topology.nvlinks.Between(places.first, places.second) == 0) {
    reader.Fail(ends, "there is no NVLink between these GPUs");
  }
  return places;
}

LinkFault ReadLink(const YAML::Node& node, const Topology& topology, DocumentReader& reader) {
  LinkFault fault;
  if (!reader.CheckKeys(node, {"gpu", "pcie_switch", "gpus", "factor", "from_ms", "to_ms"})) {
    return fault;
  }
  const int named = (node["gpu"] ? 1 : 0) + (node["pcie_switch"] ? 1 : 0) + (node["gpus"] ? 1 : 0);
  if (named != 1) {
    reader.Fail(node, "a link is named by 'gpu', 'pcie_switch' or 'gpus', one of them");
    return fault;
  }
  fault.window = ReadWindow(node, reader);
  if (node["gpu"]) {
    fault.gpu = ReadGpuPlace(node["gpu"], topology, reader);
    if (!reader.failed() && topology.gpus[*fault.gpu].pcie_gbps <= 0) {
      reader.Fail(node["gpu"], "the GPU's link has no rate; give it 'pcie_gbps'");
    }
  } else if (node["gpus"]) {
    fault.nvlink = ReadNvlink(node["gpus"], topology, reader);
  } else {
    const std::string name = reader.Name(node, "pcie_switch");
    const auto found = std::ranges::find(topology.switches, name, &PcieSwitch::name);
    if (found == topology.switches.end()) {
      reader.Fail(node["pcie_switch"], "no pcie_switches entry '" + name + "'");
    } else {
      fault.pcie_switch = static_cast<unsigned>(found - topology.switches.begin());
    }
  }
  return fault;
}

}  // namespace

FaultPlan ReadFaultPlan(const YAML::Node& faults, const Topology& topology,
                        DocumentReader& reader) {
  FaultPlan plan;
  if (!faults || !faults.IsMap() || reader.failed()) return plan;
  if (const YAML::Node calls = faults["calls"]; calls && reader.CheckList(calls, "calls")) {
    if (calls.size() > kMaxCallFaults) {
      reader.Fail(calls, "at most " + std::to_string(kMaxCallFaults) + " calls");
      return plan;
    }
    for (const YAML::Node& node : calls) {
      plan.calls.push_back(ReadCall(node, topology, reader));
      if (reader.failed()) return plan;
    }
  }
  if (const YAML::Node links = faults["links"]; links && reader.CheckList(links, "links")) {
    for (const YAML::Node& node : links) {
      plan.links.push_back(ReadLink(node, topology, reader));
      if (reader.failed()) return plan;
    }
  }
  plan.disk = ReadDiskFaults(faults["disk"], reader);
  return plan;
}

std::optional<CallEffect> CountCall(const FaultPlan& plan, SharedNodeState& state, CallKind call,
                                    unsigned place) {
  std::optional<CallEffect> effect;
  for (std::size_t i = 0; i < plan.calls.size(); ++i) {
    const CallFault& fault = plan.calls[i];
    if (fault.call != call || fault.place != place) continue;
    if (state.counted_calls[i].fetch_add(1, std::memory_order_relaxed) + 1 == fault.nth) {
      effect = fault.effect;
    }
  }
  return effect;
}

TimePoint LinkWindows::RealTime(Duration modelled) const {
  return start_ + Duration(std::llround(static_cast<double>(modelled.count()) * time_scale_));
}

std::pair<double, TimePoint> LinkWindows::At(TimePoint time) const {
  double factor = 1;
  TimePoint until = TimePoint::max();
  for (const RateWindow& window : windows_) {
    const TimePoint from = RealTime(window.from);
    const TimePoint to = RealTime(window.to);
    if (time < from) until = std::min(until, from);
    if (time < from || time >= to) continue;
    factor *= window.factor;
    until = std::min(until, to);
  }
  return {factor, until};
}

TimePoint LinkWindows::EndOf(TimePoint begin, Bytes size, double bytes_per_second) const {
  auto left = static_cast<double>(size);
  for (TimePoint now = begin;;) {
    const auto [factor, until] = At(now);
    const double rate = bytes_per_second * factor;
    if (rate > 0) {
      const Duration rest(std::llround(left / rate * 1e9));
      if (until == TimePoint::max() || now + rest <= until) return now + rest;
      left -= rate * static_cast<double>((until - now).count()) / 1e9;
    }
    // Every window has an end, so a link that stands still does so until then.
    now = until;
  }
}

}  // namespace torpor::emulator

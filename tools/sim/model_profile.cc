#include "tools/sim/model_profile.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "emulator/node/document_reader.h"
#include "scheduler/events.h"

namespace torpor::sim {

extern const char kPaperProfiles[];

namespace {

using emulator::DocumentReader;
using emulator::NumberRange;

constexpr NumberRange kMilliseconds = {0.001, 1e7};
constexpr NumberRange kOverheadMs = {0, 1000};
constexpr NumberRange kSeconds = {0, 1e6};
constexpr NumberRange kMegabytes = {0.001, 1e7};
constexpr NumberRange kGigabytes = {0.001, 1e4};
constexpr NumberRange kReservedGigabytes = {0, 1e4};
constexpr NumberRange kGbps = {0.001, 1e5};
constexpr NumberRange kPercentile = {0.01, scheduler::kMaxPercentile};
constexpr unsigned kMaxBlocks = 1'000'000;

// Rounds to nanoseconds.
Duration Milliseconds(double ms) { return Duration(std::llround(ms * 1e6)); }
// Decimal gigabytes (1e9 bytes), rounded to bytes.
Bytes Gigabytes(double gb) { return static_cast<Bytes>(std::llround(gb * 1e9)); }

// All of what is known of native containers, or nothing.
void ReadNative(const YAML::Node& node, ModelProfile* model, DocumentReader& reader) {
  if (!node["native_ms"] && !node["native_gb"] && !node["cold_start_s"]) return;
  model->native = Milliseconds(reader.Number(node, "native_ms", kMilliseconds));
  model->native_footprint = Gigabytes(reader.Number(node, "native_gb", kGigabytes));
  model->cold_start = Milliseconds(reader.Number(node, "cold_start_s", kSeconds) * 1e3);
}

// Reads a model's entry. Errors go to the reader; the result counts only without them.
ModelProfile ReadModel(const YAML::Node& node, DocumentReader& reader) {
  ModelProfile model;
  if (!reader.CheckKeys(node,
                        {"name", "native_ms", "resident_ms", "host_ms", "peer_ms", "parameters_mb",
                         "footprint_gb", "native_gb", "cold_start_s", "blocks", "deadline_ms"})) {
    return model;
  }
  model.name = reader.Name(node, "name");
  model.resident = Milliseconds(reader.Number(node, "resident_ms", kMilliseconds));
  model.host = Milliseconds(reader.Number(node, "host_ms", kMilliseconds));
  model.peer = Milliseconds(reader.Number(node, "peer_ms", kMilliseconds));
  model.parameters = Gigabytes(reader.Number(node, "parameters_mb", kMegabytes) / 1e3);
  model.footprint = Gigabytes(reader.Number(node, "footprint_gb", kGigabytes));
  model.deadline = Milliseconds(reader.Number(node, "deadline_ms", kMilliseconds));
  ReadNative(node, &model, reader);
  if (node["blocks"]) {
    model.blocks = reader.Count(node["blocks"], "a number of blocks", 1, kMaxBlocks);
  }
  return model;
}

// A transfer that hides behind nothing, and still takes longer than all of the request, is a slip.
void CheckTimes(const ModelProfile& model, const Profiles& profiles, const YAML::Node& node,
                DocumentReader& reader) {
  if (model.host < model.resident || model.peer < model.resident) {
    return reader.Fail(node, "host_ms and peer_ms must not be below resident_ms");
  }
  if (profiles.HostRest(model) < Duration::zero()) {
    return reader.Fail(node, "parameters_mb take longer than host_ms over reference pcie_gbps");
  }
  if (profiles.PeerRest(model) < Duration::zero()) {
    reader.Fail(node, "parameters_mb take longer than peer_ms over reference nvlink_gbps");
  }
}

// Reads the list of models, after the links, against which their times are checked.
void ReadModels(const YAML::Node& root, Profiles* profiles, DocumentReader& reader) {
  if (!root["models"]) return reader.Fail(root, "needs a list 'models'");
  if (!reader.CheckList(root["models"], "models")) return;
  for (const YAML::Node& node : root["models"]) {
    ModelProfile model = ReadModel(node, reader);
    if (reader.failed()) return;
    CheckTimes(model, *profiles, node, reader);
    if (FindModel(*profiles, model.name).ok()) {
      reader.Fail(node, "a second model '" + model.name + "'");
    }
    profiles->models.push_back(std::move(model));  // NOLINT: a handful of them
  }
}

// Reads a whole file. Errors go to the reader; the result counts only without them.
Profiles ReadDocument(const YAML::Node& root, DocumentReader& reader) {
  Profiles profiles;
  if (!reader.CheckKeys(root, {"version", "reference", "reserved_gb", "percentile", "turnover_ms",
                               "driver_call_ms", "models"})) {
    return profiles;
  }
  if (!root["version"] || !root["version"].IsScalar() || root["version"].Scalar() != "v1") {
    reader.Fail(root, "needs 'version: v1'");
  }
  const YAML::Node reference = root["reference"];
  if (!reference) reader.Fail(root, "needs 'reference'");
  if (reader.failed() || !reader.CheckKeys(reference, {"pcie_gbps", "nvlink_gbps"})) {
    return profiles;
  }
  profiles.pcie_bytes_per_s = reader.Number(reference, "pcie_gbps", kGbps) * 1e9;
  profiles.nvlink_bytes_per_s = reader.Number(reference, "nvlink_gbps", kGbps) * 1e9;
  profiles.reserved = Gigabytes(reader.Number(root, "reserved_gb", kReservedGigabytes, 0));
  profiles.percentile = reader.Number(root, "percentile", kPercentile);
  profiles.turnover = Milliseconds(reader.Number(root, "turnover_ms", kOverheadMs, 0));
  profiles.driver_call = Milliseconds(reader.Number(root, "driver_call_ms", kOverheadMs, 0));
  ReadModels(root, &profiles, reader);
  return profiles;
}

// Returns the time of a transfer alone on a link, rounded to nanoseconds.
Duration TimeOf(Bytes bytes, double bytes_per_s) {
  return Duration(std::llround(static_cast<double>(bytes) / bytes_per_s * 1e9));
}

}  // namespace

Duration Profiles::HostTransfer(const ModelProfile& model) const {
  return TimeOf(model.parameters, pcie_bytes_per_s);
}

Duration Profiles::PeerTransfer(const ModelProfile& model) const {
  return TimeOf(model.parameters, nvlink_bytes_per_s);
}

Duration Profiles::HostRest(const ModelProfile& model) const {
  return model.host - std::max(HostTransfer(model), model.resident);
}

Duration Profiles::PeerRest(const ModelProfile& model) const {
  return model.peer - std::max(PeerTransfer(model), model.resident);
}

absl::StatusOr<Profiles> ParseProfiles(const std::string& yaml, std::string_view source) {
  try {
    DocumentReader reader(source);
    Profiles profiles = ReadDocument(YAML::Load(yaml), reader);
    if (!reader.failed()) return profiles;
    return absl::InvalidArgumentError(reader.problem());
  } catch (const YAML::Exception& error) {  // yaml-cpp reports by exceptions only
    return absl::InvalidArgumentError(absl::StrCat(std::string(source), ": ", error.what()));
  }
}

absl::StatusOr<Profiles> ReadProfiles(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": cannot be read"));
  return ParseProfiles(text.str(), path);
}

const Profiles& PaperProfiles() {
  static const auto* const profiles = [] {
    auto parsed = ParseProfiles(kPaperProfiles, "paper.yaml");
    TORPOR_CHECK(parsed.ok());
    return new Profiles(*std::move(parsed));
  }();
  return *profiles;
}

absl::StatusOr<std::size_t> FindModel(const Profiles& profiles, std::string_view name) {
  for (std::size_t i = 0; i < profiles.models.size(); ++i) {
    if (profiles.models[i].name == name) return i;
  }
  return absl::NotFoundError(absl::StrCat("no model '", std::string(name), "' in the profiles"));
}

}  // namespace torpor::sim

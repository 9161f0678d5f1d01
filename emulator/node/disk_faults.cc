#include "emulator/node/disk_faults.h"

#include <fnmatch.h>
#include <yaml-cpp/yaml.h>

#include <array>
#include <utility>

#include "emulator/node/document_reader.h"

namespace torpor::emulator {
namespace {

constexpr unsigned kMaxDiskOperations = 1'000'000'000;

constexpr std::array<std::pair<std::string_view, DiskOperation>, 6> kOperations = {
    {{"create", DiskOperation::kCreate},
     {"read", DiskOperation::kRead},
     {"write", DiskOperation::kWrite},
     {"sync", DiskOperation::kSync},
     {"rename", DiskOperation::kRename},
     {"remove", DiskOperation::kRemove}}};
constexpr std::array<std::pair<std::string_view, DiskError>, 4> kErrors = {
    {{"ENOSPC", DiskError::kNoSpace},
     {"EIO", DiskError::kInputOutput},
     {"torn", DiskError::kTorn},
     {"wrong_bytes", DiskError::kWrongBytes}}};

std::uint64_t ReadTimes(const YAML::Node& value, DocumentReader& reader) {
  if (!value) return 1;
  if (value.IsScalar() && value.Scalar() == "forever") return DiskFault::kForever;
  return reader.Count(value, "times, if not forever,", 1, kMaxDiskOperations);
}

// Fails if no disk answers the operation by the error.
void CheckError(const YAML::Node& node, const DiskFault& fault, DocumentReader& reader) {
  const bool is_read = fault.operation == DiskOperation::kRead;
  const bool takes_space = !is_read && fault.operation != DiskOperation::kRemove;
  if (fault.error == DiskError::kTorn && fault.operation != DiskOperation::kWrite) {
    reader.Fail(node, "only a write can be torn; write EIO");
  }
  if (fault.error == DiskError::kWrongBytes && !is_read) {
    reader.Fail(node, "only a read can have wrong_bytes; write EIO");
  }
  if (fault.error == DiskError::kNoSpace && !takes_space) {
    reader.Fail(node, "reads and removals need no space; write EIO");
  }
}

DiskFault ReadDiskFault(const YAML::Node& node, DocumentReader& reader) {
  DiskFault fault;
  if (!reader.CheckKeys(node, {"operation", "path", "nth", "times", "error"})) return fault;
  fault.operation = reader.Word(node, "operation", kOperations);
  fault.error = reader.Word(node, "error", kErrors);
  if (node["path"]) fault.path = reader.Name(node, "path");
  if (!node["nth"]) {
    reader.Fail(node, "needs 'nth', the number of the operation from 1 on");
  } else {
    fault.nth = reader.Count(node["nth"], "nth", 1, kMaxDiskOperations);
  }
  fault.times = ReadTimes(node["times"], reader);
  CheckError(node, fault, reader);
  return fault;
}

template <typename Table, typename Meaning>
std::string_view WordOf(const Table& table, Meaning wanted) {
  for (const auto& [word, meaning] : table) {
    if (meaning == wanted) return word;
  }
  return {};
}

}  // namespace

bool DiskFault::Counts(DiskOperation other, const std::string& other_path) const {
  return other == operation && fnmatch(path.c_str(), other_path.c_str(), 0) == 0;
}

std::string_view NameOf(DiskOperation operation) { return WordOf(kOperations, operation); }

std::string_view NameOf(DiskError error) { return WordOf(kErrors, error); }

std::vector<DiskFault> ReadDiskFaults(const YAML::Node& list, DocumentReader& reader) {
  std::vector<DiskFault> faults;
  if (!list || !reader.CheckList(list, "disk")) return faults;
  faults.reserve(list.size());
  for (const YAML::Node& node : list) {
    faults.push_back(ReadDiskFault(node, reader));
    if (reader.failed()) break;
  }
  return faults;
}

}  // namespace torpor::emulator

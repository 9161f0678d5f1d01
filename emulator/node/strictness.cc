#include "emulator/node/strictness.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <iterator>
#include <string>

#include "emulator/node/document_reader.h"

namespace torpor::emulator {
namespace {

constexpr const char* kVariable = "TORPOR_EMULATOR_STRICT";

struct HintsWord {
  const char* word;
  AddressHints hints;
};
constexpr HintsWord kHintsWords[] = {{"honoured", AddressHints::kHonoured},
                                     {"elsewhere", AddressHints::kElsewhere},
                                     {"refused", AddressHints::kRefused}};

std::optional<AddressHints> ReadHints(const YAML::Node& node, DocumentReader& reader) {
  if (!node) return std::nullopt;
  const std::string word = node.IsScalar() ? node.Scalar() : "";
  const auto* found = std::find_if(std::begin(kHintsWords), std::end(kHintsWords),
                                   [&](const HintsWord& entry) { return word == entry.word; });
  if (found != std::end(kHintsWords)) return found->hints;
  reader.Fail(node, "'addresses' must be honoured, elsewhere or refused");
  return std::nullopt;
}

}  // namespace

Strictness Strictness::All() {
  return {.host_registrations = true,
          .addresses = AddressHints::kHonoured,
          .hidden_faults = true,
          .memory_overheads = true,
          .log_failures = true,
          .costs = true,
          .launch_queues = true};
}

Strictness ReadStrictness(const YAML::Node& node, DocumentReader& reader) {
  Strictness strict;
  if (bool all = false; YAML::convert<bool>::decode(node, all)) {
    return all ? Strictness::All() : strict;
  }
  if (!node.IsMap()) {
    reader.Fail(node, "'strict' must be true, false or a mapping of points");
    return strict;
  }
  if (!reader.CheckKeys(node, {"host_registrations", "addresses", "hidden_faults",
                               "memory_overheads", "log_failures", "costs", "launch_queues"})) {
    return strict;
  }
  strict.host_registrations = reader.Choice(node, "host_registrations", false);
  strict.addresses = ReadHints(node["addresses"], reader);
  strict.hidden_faults = reader.Choice(node, "hidden_faults", false);
  strict.memory_overheads = reader.Choice(node, "memory_overheads", false);
  strict.log_failures = reader.Choice(node, "log_failures", false);
  strict.costs = reader.Choice(node, "costs", false);
  strict.launch_queues = reader.Choice(node, "launch_queues", false);
  return strict;
}

NodeResult<Strictness> ParseStrictness(std::string_view text) {
  if (text.empty()) return Strictness();
  DocumentReader reader(kVariable);
  try {
    const Strictness strict = ReadStrictness(YAML::Load(std::string(text)), reader);
    if (!reader.failed()) return strict;
    return Failure<NodeError>{NodeError::kInvalid, reader.problem()};
  } catch (const YAML::Exception& error) {
    return Failure<NodeError>{NodeError::kInvalid, std::string(kVariable) + ": " + error.what()};
  }
}

}  // namespace torpor::emulator

#include "server/node/address_search.h"

#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"

namespace torpor::server {
namespace {

// A context on each of eight GPUs takes seconds.
constexpr Duration kProbeTimeout = std::chrono::seconds(60);

struct Found {
  std::optional<std::size_t> candidate;
  std::string why;  // none
};

std::string ProbeDocument(const std::vector<GpuIndex>& gpus, const AddressConfig& addresses) {
  nlohmann::json document = {
      {"gpus", nlohmann::json::array()}, {"base", addresses.base}, {"bytes", addresses.space}};
  for (const GpuIndex gpu : gpus) document["gpus"].push_back(gpu.value);
  return document.dump();
}

absl::StatusOr<Found> Probe(ProcessCommand command, const std::vector<GpuIndex>& gpus,
                            const AddressConfig& addresses) {
  command.arguments.push_back("--probe-addresses=" + ProbeDocument(gpus, addresses));
  TORPOR_ASSIGN_OR_RETURN(const std::string output, RunForOutput(command, kProbeTimeout));
  const auto answer = nlohmann::json::parse(output, nullptr, /*allow_exceptions=*/false);
  if (!answer.is_object() || !answer.contains("found") || !answer.contains("why")) {
    return absl::InternalError(
        absl::StrCat(command.program, " --probe-addresses does not tell addresses: ", output));
  }
  Found found;
  if (answer["found"].is_number_unsigned()) found.candidate = answer["found"].get<std::size_t>();
  if (answer["why"].is_string()) found.why = answer["why"].get<std::string>();
  return found;
}

void FallBack(const std::string& why, Config& config) {
  config.device.address_mode = AddressMode::kTranslate;
  config.addresses.fallback =
      absl::StrCat("the driver reserves no addresses for all sessions (last try: ", why, ")");
  spdlog::warn(
      "address_mode: translate takes the place of map, since {}. Kernels that follow addresses in "
      "GPU memory, and GPUs that reach each other's memory, need map: try another address_base. "
      "With address_mode: translate in the configuration this warning ends",
      config.addresses.fallback);
}

}  // namespace

absl::Status SettleAddresses(ProcessCommand probe, const std::vector<GpuIndex>& gpus,
                             Config& config) {
  const auto candidates = AddressCandidates(config.addresses.base, config.addresses.space);
  if (candidates.empty()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "no addresses are left for sessions from address_base %#x on; use 0x200000000000",
        config.addresses.base));
  }
  config.addresses.found = candidates.front();
  if (config.device.address_mode != AddressMode::kMap) return absl::OkStatus();
  TORPOR_ASSIGN_OR_RETURN(const Found found, Probe(std::move(probe), gpus, config.addresses));
  if (!found.candidate || *found.candidate >= candidates.size()) {
    FallBack(found.why, config);
    return absl::OkStatus();
  }
  config.addresses.found = candidates[*found.candidate];
  spdlog::info("{} GiB of addresses for sessions at {:#x}",
               config.addresses.found.device_bytes / kGiB, config.addresses.found.device_base);
  return absl::OkStatus();
}

}  // namespace torpor::server

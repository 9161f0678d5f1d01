#include "tools/torporctl/node_report.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <nlohmann/json.hpp>

#include "tools/text_table/text_table.h"
#include "tools/torporctl/admin_call.h"
#include "tools/torporctl/standing.h"

namespace torpor::torporctl {
namespace {

using Align = TextTable::Align;
using Json = nlohmann::ordered_json;

// Returns the two largest units, for example "3h5m", or seconds with a decimal below a minute.
std::string HumanSeconds(double seconds) {
  const auto whole = static_cast<std::uint64_t>(seconds);
  if (whole >= 86400) return fmt::format("{}d{}h", whole / 86400, whole / 3600 % 24);
  if (whole >= 3600) return fmt::format("{}h{}m", whole / 3600, whole / 60 % 60);
  if (whole >= 60) return fmt::format("{}m{}s", whole / 60, whole % 60);
  return fmt::format("{:.1f}s", seconds);
}

std::string HumanRate(double bytes_per_second) {
  return bytes_per_second > 0 ? fmt::format("{:.1f}GB/s", bytes_per_second / 1e9) : "-";
}

std::string OrDash(const std::string& text) { return text.empty() ? "-" : text; }

std::string PolicyText(const v1::NodeStatus& status) {
  return status.has_alpha() ? fmt::format("{}, alpha {:.3g}", status.policy(), status.alpha())
                            : OrDash(status.policy());
}

// Returns, for example, "map, 15.9TiB of 16.0TiB free", with the reason for another mode than the
// configured one.
std::string AddressText(const v1::NodeStatus& status) {
  if (status.address_mode().empty()) return "-";
  std::string text =
      fmt::format("{}, {} of {} free", status.address_mode(),
                  HumanBytes(status.free_address_bytes()), HumanBytes(status.address_bytes()));
  if (!status.address_fallback().empty()) {
    text += fmt::format("\n          instead of map: {}", status.address_fallback());
  }
  return text;
}

// Returns, for example, "12 of 13, 92.3%".
std::string InTimeText(const v1::FunctionStatus& function) {
  if (function.finished() == 0) return "none yet";
  const double share =
      static_cast<double>(function.in_time()) / static_cast<double>(function.finished());
  return fmt::format("{} of {}, {:.1f}%", function.in_time(), function.finished(), 100 * share);
}

// 0 stands for no limit.
std::string LimitText(std::uint32_t limit) {
  return limit == 0 ? "any number" : fmt::format("at most {}", limit);
}

std::string KeepAliveText(double ms) { return ms > 0 ? fmt::format("{:g}ms", ms) : "off"; }

// Returns, for example, "running, 2 restarts".
template <typename Status>
std::string ProcessText(const Status& status) {
  if (!status.has_process()) return "-";
  const v1::ProcessStatus& process = status.process();
  const std::uint64_t restarts = process.restarts();
  if (restarts == 0) return process.state();
  return fmt::format("{}, {} restart{}", process.state(), restarts, restarts == 1 ? "" : "s");
}

template <typename Status>
Json ProcessJson(const Status& status) {
  if (!status.has_process()) return {};
  const v1::ProcessStatus& process = status.process();
  return {{"state", process.state()},
          {"pid", process.pid()},
          {"restarts", process.restarts()},
          {"last_end", process.last_end()}};
}

// As ProcessText, and how the last one has ended.
std::string ProcessLine(const v1::FunctionStatus& function) {
  const std::string& last_end = function.process().last_end();
  if (last_end.empty()) return ProcessText(function);
  return fmt::format("{}; the last: {}", ProcessText(function), last_end);
}

// Returns, for example, "3, no GPU for 2.0s".
std::string StrikesText(const v1::FunctionStatus& function) {
  if (function.refused_ms() <= 0) return std::to_string(function.strikes());
  return fmt::format("{}, no GPU for {}", function.strikes(),
                     HumanSeconds(function.refused_ms() / 1000));
}

// The fields that functions and instances share.
template <typename Status>
Json CommonJson(const Status& status) {
  Json resident = Json::array();
  for (const int gpu : status.resident_gpus()) resident.push_back(gpu);
  return {{"name", status.name()},           {"state", status.state()},
          {"health", status.health()},       {"resident_gpus", std::move(resident)},
          {"is_pinned", status.is_pinned()}, {"image_bytes", status.image_bytes()},
          {"sessions", status.sessions()},   {"requests", status.requests()},
          {"swaps_in", status.swaps_in()},   {"gpu_seconds", status.gpu_seconds()},
          {"upstream", status.upstream()},   {"process", ProcessJson(status)}};
}

// Returns the fields of `torporctl functions -o json`; names are part of the interface.
Json ToJson(const v1::FunctionStatus& function) {
  Json json = CommonJson(function);
  json.update({{"memory_limit_bytes", function.memory_limit_bytes()},
               {"errors", function.errors()},
               {"deadline_ms", function.deadline_ms()},
               {"percentile", function.percentile()},
               {"priority", function.priority()},
               {"max_waiting", function.max_waiting()},
               {"keep_alive_ms", function.keep_alive_ms()},
               {"waiting", function.waiting()},
               {"finished", function.finished()},
               {"in_time", function.in_time()},
               {"is_compliant", function.is_compliant()},
               {"strikes", function.strikes()},
               {"refused_ms", function.refused_ms()}});
  AddStanding(function, json);
  if (function.instances_size() > 0) {
    Json instances = Json::array();
    for (const v1::InstanceStatus& instance : function.instances()) {
      instances.push_back(CommonJson(instance));
    }
    json["instances"] = std::move(instances);
  }
  return json;
}

std::string MovesText(const v1::SpillMoves& moves) {
  const double rate =
      moves.seconds() > 0 ? static_cast<double>(moves.bytes()) / moves.seconds() : 0;
  return fmt::format("{} ({}{})", moves.images(), HumanRate(rate),
                     moves.failures() > 0 ? fmt::format(", {} failed", moves.failures()) : "");
}

// Empty on a node whose images stay in host memory.
std::string DiskLine(const v1::SpillStatus& spills) {
  if (spills.limit_bytes() == 0 && spills.images() == 0) return "";
  return fmt::format("disk      {} of {} by {} images; {} out, {} back\n",
                     HumanBytes(spills.bytes()), HumanBytes(spills.limit_bytes()), spills.images(),
                     MovesText(spills.out()), MovesText(spills.back()));
}

// Empty where no two images have equal blocks.
std::string SharingLine(const v1::SharingStatus& sharing) {
  if (sharing.used_bytes() == 0) return "";
  return fmt::format("equal     {} of images, stored in {}\n", HumanBytes(sharing.used_bytes()),
                     HumanBytes(sharing.stored_bytes()));
}

Json MovesJson(const v1::SpillMoves& moves) {
  return {{"images", moves.images()},
          {"bytes", moves.bytes()},
          {"seconds", moves.seconds()},
          {"failures", moves.failures()}};
}

Json SpillsJson(const v1::SpillStatus& spills) {
  return {{"limit_bytes", spills.limit_bytes()},
          {"bytes", spills.bytes()},
          {"images", spills.images()},
          {"out", MovesJson(spills.out())},
          {"back", MovesJson(spills.back())}};
}

}  // namespace

absl::StatusOr<v1::FunctionStatus> FetchFunction(const std::string& admin_socket,
                                                 const std::string& function) {
  const auto functions = FetchFunctions(admin_socket);
  if (!functions.ok()) return functions.status();
  for (const v1::FunctionStatus& found : functions->functions()) {
    if (found.name() == function) return found;
  }
  return absl::NotFoundError(fmt::format(
      "there is no function {}; torporctl functions lists those that there are", function));
}

std::string FunctionText(const v1::FunctionStatus& function) {
  return fmt::format(
      "function     {}\nstate        {}\nobjective    {:g}% within {:g}ms\nin time      {}\n"
      "complies     {}\nstanding     {}\nwaiting      {}, {} may\npriority     {}\n"
      "keep alive   {}\nprocess      {}\nstrikes      {}\n",
      function.name(), function.state(), 100 * function.percentile(), function.deadline_ms(),
      InTimeText(function), function.is_compliant() ? "yes" : "no", OrDash(StandingText(function)),
      function.waiting(), LimitText(function.max_waiting()), function.priority(),
      KeepAliveText(function.keep_alive_ms()), ProcessLine(function), StrikesText(function));
}

std::string FunctionJson(const v1::FunctionStatus& function) {
  return ToJson(function).dump(2) + "\n";
}

absl::StatusOr<v1::NodeStatus> FetchStatus(const std::string& admin_socket) {
  return CallAdmin<v1::NodeStatus>(
      admin_socket, kQueryPatience, [](auto& stub, auto& context, auto& response) {
        return stub.GetStatus(&context, v1::GetStatusRequest(), &response);
      });
}

absl::StatusOr<v1::ListFunctionsResponse> FetchFunctions(const std::string& admin_socket) {
  return CallAdmin<v1::ListFunctionsResponse>(
      admin_socket, kQueryPatience, [](auto& stub, auto& context, auto& response) {
        return stub.ListFunctions(&context, v1::ListFunctionsRequest(), &response);
      });
}

std::string HumanBytes(std::uint64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  if (unit == 0) return fmt::format("{}B", bytes);
  return fmt::format("{:.1f}{}", value, kUnits[unit]);
}

// Which domains have executors; empty where no GPU has more than one.
std::string ExecutorTable(const v1::NodeStatus& status) {
  TextTable table({{"GPU", Align::kRight}, {"EXECUTOR", Align::kRight}, {"STATE"}, {"SERVES"}});
  bool has_several = false;
  for (const v1::GpuStatus& gpu : status.gpus()) {
    has_several |= gpu.executors_size() > 1;
    for (const v1::ExecutorStatus& executor : gpu.executors()) {
      table.AddRow({std::to_string(gpu.gpu()),
                    executor.pid() == 0 ? "-" : std::to_string(executor.pid()), executor.state(),
                    OrDash(executor.domain())});
    }
  }
  return has_several ? "\n" + table.Render() : "";
}

// What executors can do and need not; empty if nothing.
std::string ConfinementText(const v1::NodeStatus& status) {
  std::set<std::string> all;
  for (const v1::GpuStatus& gpu : status.gpus()) {
    for (const v1::ExecutorStatus& executor : gpu.executors()) {
      all.insert(executor.not_confined().begin(), executor.not_confined().end());
    }
  }
  std::string text;
  for (const std::string& one : all) text += "\nexecutors are not confined in " + one;
  return text.empty() ? text : text + "\n";
}

std::string StatusTable(const v1::NodeStatus& status) {
  std::string text = fmt::format(
      "state     {}\nversion   {}\nuptime    {}\nhttp      {}\nmetrics   {}\npolicy    {}\n"
      "comply    {} of {} functions\nsessions  {}\n"
      "queued    {}\nswaps     {} in, {} out\nimages    {} of host memory\nhost      {} of {} "
      "allocated, {} refused\n{}{}addresses {}\n\n",
      status.state(), status.version(), HumanSeconds(status.uptime_seconds()),
      OrDash(status.http_address()), OrDash(status.metrics_address()), PolicyText(status),
      status.compliant_functions(), status.functions(), status.sessions(), status.queued_requests(),
      status.swaps_in(), status.swaps_out(), HumanBytes(status.host_image_bytes()),
      HumanBytes(status.host_memory_used_bytes()), HumanBytes(status.host_memory_bytes()),
      status.host_memory_refusals(), SharingLine(status.sharing()), DiskLine(status.spills()),
      AddressText(status));
  TextTable table({{"GPU", Align::kRight},
                   {"STATE"},
                   {"USED", Align::kRight},
                   {"POOL", Align::kRight},
                   {"LINK", Align::kRight},
                   {"GROUP", Align::kRight},
                   {"BUSY", Align::kRight},
                   {"RESTARTS", Align::kRight},
                   {"PID", Align::kRight},
                   {"SPARE", Align::kRight},
                   {"LEASED TO"},
                   {"NAME"}});
  for (const v1::GpuStatus& gpu : status.gpus()) {
    table.AddRow({std::to_string(gpu.gpu()), gpu.state(), HumanBytes(gpu.used_bytes()),
                  HumanBytes(gpu.pool_bytes()), HumanRate(gpu.link_bytes_per_second()),
                  HumanBytes(gpu.swap_group_bytes()), HumanSeconds(gpu.busy_seconds()),
                  std::to_string(gpu.executor_restarts()), std::to_string(gpu.executor_pid()),
                  gpu.spare_pid() == 0 ? "-" : std::to_string(gpu.spare_pid()),
                  OrDash(gpu.leased_to()), gpu.name()});
  }
  return text + table.Render() + ExecutorTable(status) + ConfinementText(status);
}

std::string StatusJson(const v1::NodeStatus& status) {
  Json gpus = Json::array();
  for (const v1::GpuStatus& gpu : status.gpus()) {
    Json executors = Json::array();
    for (const v1::ExecutorStatus& executor : gpu.executors()) {
      executors.push_back({{"pid", executor.pid()},
                           {"state", executor.state()},
                           {"domain", executor.domain()},
                           {"not_confined", executor.not_confined()}});
    }
    gpus.push_back({{"gpu", gpu.gpu()},
                    {"name", gpu.name()},
                    {"uuid", gpu.uuid()},
                    {"state", gpu.state()},
                    {"executor_pid", gpu.executor_pid()},
                    {"executors", executors},
                    {"spare_pid", gpu.spare_pid()},
                    {"pool_owner_pid", gpu.pool_owner_pid()},
                    {"executor_restarts", gpu.executor_restarts()},
                    {"pool_bytes", gpu.pool_bytes()},
                    {"used_bytes", gpu.used_bytes()},
                    {"swap_group_bytes", gpu.swap_group_bytes()},
                    {"link_bytes_per_second", gpu.link_bytes_per_second()},
                    {"busy_seconds", gpu.busy_seconds()},
                    {"leased_to", gpu.leased_to()}});
  }
  const Json json = {{"version", status.version()},
                     {"state", status.state()},
                     {"uptime_seconds", status.uptime_seconds()},
                     {"http_address", status.http_address()},
                     {"metrics_address", status.metrics_address()},
                     {"policy", status.policy()},
                     {"alpha", status.has_alpha() ? Json(status.alpha()) : Json()},
                     {"functions", status.functions()},
                     {"compliant_functions", status.compliant_functions()},
                     {"sessions", status.sessions()},
                     {"queued_requests", status.queued_requests()},
                     {"swaps_in", status.swaps_in()},
                     {"swaps_out", status.swaps_out()},
                     {"host_image_bytes", status.host_image_bytes()},
                     {"host_memory_bytes", status.host_memory_bytes()},
                     {"host_memory_used_bytes", status.host_memory_used_bytes()},
                     {"host_memory_refusals", status.host_memory_refusals()},
                     {"sharing",
                      {{"stored_bytes", status.sharing().stored_bytes()},
                       {"used_bytes", status.sharing().used_bytes()}}},
                     {"spills", SpillsJson(status.spills())},
                     {"address_mode", status.address_mode()},
                     {"address_fallback", status.address_fallback()},
                     {"address_base", status.address_base()},
                     {"address_bytes", status.address_bytes()},
                     {"free_address_bytes", status.free_address_bytes()},
                     {"gpus", std::move(gpus)}};
  return json.dump(2) + "\n";
}

std::string FunctionsTable(const v1::ListFunctionsResponse& functions) {
  TextTable table({{"FUNCTION"},
                   {"STATE"},
                   {"HEALTH"},
                   {"PROCESS"},
                   {"RESIDENT ON"},
                   {"PINNED"},
                   {"IMAGE", Align::kRight},
                   {"LIMIT", Align::kRight},
                   {"SESSIONS", Align::kRight},
                   {"REQUESTS", Align::kRight},
                   {"ERRORS", Align::kRight},
                   {"SWAPS IN", Align::kRight},
                   {"GPU SECONDS", Align::kRight},
                   {"UPSTREAM"}});
  const auto add_row = [&table](const std::string& name, const auto& status,
                                const std::string& limit, const std::string& errors) {
    table.AddRow({name, status.state(), status.health(), ProcessText(status),
                  OrDash(fmt::format("{}", fmt::join(status.resident_gpus(), ","))),
                  status.is_pinned() ? "yes" : "-", HumanBytes(status.image_bytes()), limit,
                  std::to_string(status.sessions()), std::to_string(status.requests()), errors,
                  std::to_string(status.swaps_in()), fmt::format("{:.3f}", status.gpu_seconds()),
                  OrDash(status.upstream())});
  };
  for (const v1::FunctionStatus& function : functions.functions()) {
    const std::string limit =
        function.memory_limit_bytes() == 0 ? "gpu" : HumanBytes(function.memory_limit_bytes());
    add_row(function.name(), function, limit, std::to_string(function.errors()));
    for (const v1::InstanceStatus& instance : function.instances()) {
      add_row(fmt::format("{}/{}", function.name(), instance.name()), instance, "-", "-");
    }
  }
  return table.Render();
}

std::string FunctionsJson(const v1::ListFunctionsResponse& functions) {
  Json list = Json::array();
  for (const v1::FunctionStatus& function : functions.functions()) {
    list.push_back(ToJson(function));
  }
  return Json({{"functions", std::move(list)}}).dump(2) + "\n";
}

}  // namespace torpor::torporctl

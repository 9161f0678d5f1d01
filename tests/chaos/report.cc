#include "tests/chaos/report.h"

#include <fmt/format.h>

#include <thread>

#include "tools/text_table/text_table.h"

namespace torpor::chaos {
namespace {

using Align = TextTable::Align;

constexpr double kMost = 1;  // the rank of the largest value

std::string Ms(const std::vector<Duration>& ascending, double rank) {
  return ascending.empty() ? "-"
                           : fmt::format("{:.0f}", ToMilliseconds(Percentile(ascending, rank)));
}

std::string DelayTable(const ChaosResult& result) {
  TextTable table({{"killed"},
                   {"times", Align::kRight},
                   {"overlapping", Align::kRight},
                   {"wait, ms: p50", Align::kRight},
                   {"p99", Align::kRight},
                   {"longest", Align::kRight},
                   {"limit of p99", Align::kRight},
                   {"recovery, ms: p50", Align::kRight},
                   {"longest", Align::kRight}});
  for (const auto& [victim, delays] : result.delays) {
    const Duration limit = LimitsOf(victim).p99;
    table.AddRow({NameOf(victim), fmt::format("{}", delays.kills),
                  fmt::format("{}", delays.overlapped), Ms(delays.waits, 0.5),
                  Ms(delays.waits, 0.99), Ms(delays.waits, kMost),
                  limit == Duration::max() ? "-" : fmt::format("{:.0f}", ToMilliseconds(limit)),
                  Ms(delays.recoveries, 0.5), Ms(delays.recoveries, kMost)});
  }
  table.AddRow({"nobody", "-", "-", Ms(result.undisturbed, 0.5), Ms(result.undisturbed, 0.99),
                Ms(result.undisturbed, kMost), "-", "-", "-"});
  return table.Render();
}

std::string GrowthTable(const ChaosResult& result) {
  TextTable table({{"used"},
                   {"at first", Align::kRight},
                   {"in the end", Align::kRight},
                   {"limit", Align::kRight},
                   {""}});
  for (const auto& [what, growth] : result.growths) {
    table.AddRow({what, fmt::format("{:.1f}", growth.first), fmt::format("{:.1f}", growth.last),
                  fmt::format("{:.1f}", growth.limit), growth.is_flat() ? "" : "GROWS"});
  }
  return table.Render();
}

nlohmann::ordered_json Percentiles(const std::vector<Duration>& ascending) {
  return {{"count", ascending.size()},
          {"p50", ToMilliseconds(Percentile(ascending, 0.5))},
          {"p99", ToMilliseconds(Percentile(ascending, 0.99))},
          {"longest", ToMilliseconds(Percentile(ascending, kMost))}};
}

}  // namespace

std::string TableOf(const ChaosResult& result) {
  std::string text = fmt::format(
      "{} right answers in {:.0f} s, {} wrong, {} failed, {} failed with their killed "
      "functions\n\n",
      result.requests.right, result.seconds, result.requests.wrong, result.requests.failed,
      result.requests.excused);
  if (result.requests.unanswered + result.requests.refused > 0) {
    text += fmt::format(
        "{} requests got no answer from a killed router, of which {} had been carried out; {} "
        "tries "
        "found no router\n\n",
        result.requests.unanswered, result.requests.done, result.requests.refused);
  }
  if (result.images_on_disk > 0) {
    text += fmt::format("up to {} images on the disk at a time\n\n", result.images_on_disk);
  }
  text += DelayTable(result);
  if (!result.growths.empty()) text += "\n" + GrowthTable(result);
  return text;
}

nlohmann::ordered_json JsonOf(const ChaosRun& run, const ChaosResult& result) {
  nlohmann::ordered_json json = {{"seed", run.seed},
                                 {"seconds", result.seconds},
                                 {"processors", std::thread::hardware_concurrency()},
                                 {"settings", run.settings},
                                 {"function_setting", run.function_setting},
                                 {"requests",
                                  {{"right", result.requests.right},
                                   {"wrong", result.requests.wrong},
                                   {"failed", result.requests.failed},
                                   {"failed_with_function", result.requests.excused},
                                   {"unanswered_by_router", result.requests.unanswered},
                                   {"of_these_done", result.requests.done},
                                   {"found_no_router", result.requests.refused}}}};
  for (const auto& [victim, delays] : result.delays) {
    json["kills"][NameOf(victim)] = {{"count", delays.kills},
                                     {"overlapping", delays.overlapped},
                                     {"wait_ms", Percentiles(delays.waits)},
                                     {"recovery_ms", Percentiles(delays.recoveries)}};
  }
  json["images_on_disk"] = result.images_on_disk;
  json["undisturbed_ms"] = Percentiles(result.undisturbed);
  for (const auto& [what, growth] : result.growths) {
    json["growth"][what] = {
        {"first", growth.first}, {"last", growth.last}, {"limit", growth.limit}};
  }
  json["faults"] = Judge(result, run.judges_times);
  return json;
}

}  // namespace torpor::chaos

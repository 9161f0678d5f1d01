#include "bench/e2e/served_function.h"

#include <utility>

#include "bench/e2e/modelled_node.h"
#include "tests/e2e/await_status.h"
#include "tests/e2e/metrics_page.h"

namespace torpor::bench {
namespace {

constexpr const char* kName = "measured";
// Until the order of first use is known: twice the same, and once swapped in to look through it.
constexpr int kLearningRuns = 4;

constexpr const char* kBytes = "torpor_swap_bytes_total";
constexpr const char* kSwapSeconds = "torpor_swap_duration_seconds_sum";
constexpr const char* kSwaps = "torpor_swap_duration_seconds_count";
constexpr const char* kIn = R"(direction="in")";
constexpr const char* kOut = R"(direction="out")";
constexpr const char* kOrigins[] = {"uploaded", "changed", "scratch"};

double SwapsIn(const std::string& page) { return e2e::ValueOf(page, kSwaps, {kIn}); }

}  // namespace

ServedFunction::ServedFunction(const std::string& topology, const std::string& settings,
                               ServedProgram program)
    : program_(std::move(program)),
      // Evictions are to find what requests have changed, however slow the machine is.
      node_(topology, {kName}, settings + "gpus: [0]\nidle_write_back: off\n", /*gpus=*/1,
            program_.setting) {
  node_.Start();
  metrics_address_ = node_.Status().at("metrics_address");
  node_.StartFunction(kName, program_.command);
  answer_ = Ask("resident").body;
  for (int i = 0; i < kLearningRuns; ++i) Warm();
  for (int i = 0; i < kLearningRuns; ++i) Cold();
  auto account = emulator::ModelAccount::Open(node_.folder().path() + "/gpus/emulator-node");
  if (!account.ok()) Fail(account.failure().message);
  account_ = std::make_unique<emulator::ModelAccount>(std::move(*account));
  account_->Reset();
}

double ServedFunction::Warm() {
  const TimePoint begin = SteadyClock().Now();
  Ask("resident");
  return ModelledMs(SteadyClock().Now() - begin);
}

ServedFunction::ColdRun ServedFunction::Cold() {
  const std::string before = e2e::ReadMetrics(metrics_address_);
  Evict();
  const TimePoint begin = SteadyClock().Now();
  Ask("host");
  ColdRun run;
  run.latency_ms = ModelledMs(SteadyClock().Now() - begin);
  const std::string after = AwaitSwapIn(SwapsIn(before));
  const auto grown = [&](const char* metric, const std::vector<std::string>& labels) {
    return e2e::ValueOf(after, metric, labels) - e2e::ValueOf(before, metric, labels);
  };
  run.transfer_ms = grown(kSwapSeconds, {kIn}) * 1e3 / ModelledNode().time_scale;
  run.out_ms = grown(kSwapSeconds, {kOut}) * 1e3 / ModelledNode().time_scale;
  run.bytes = grown(kBytes, {kIn});
  for (const std::string origin : kOrigins) {
    const std::string label = "origin=\"" + origin + "\"";
    run.by_origin[origin] = {.in = grown(kBytes, {kIn, label}),
                             .out = grown(kBytes, {kOut, label})};
  }
  return run;
}

e2e::Reply ServedFunction::Ask(const std::string& from) {
  e2e::Reply reply =
      node_.PostOne(std::string("/function/") + kName + program_.path, program_.body(requests_++));
  const bool is_right = reply.status == 200 && reply.headers["x-torpor-swap"] == from &&
                        (answer_.empty() || reply.body == answer_);
  if (!is_right) Fail("a wrong answer: " + reply.body + "\n" + node_.Logs());
  return reply;
}

void ServedFunction::Evict() const {
  const absl::Status evicted =
      e2e::EvictWhenIdle(node_.folder().path() + "/admin/admin.sock", kName);
  if (!evicted.ok()) Fail(std::string(evicted.message()));
}

// The metrics when there has been another swap-in than `before`.
std::string ServedFunction::AwaitSwapIn(double before) const {
  std::string page;
  const auto has_ended = [&] {
    page = e2e::ReadMetrics(metrics_address_);
    return SwapsIn(page) > before;
  };
  const absl::Status ended = e2e::Await("the swap-in has ended", has_ended);
  if (!ended.ok()) Fail(std::string(ended.message()) + "\n" + node_.Logs());
  return page;
}

}  // namespace torpor::bench

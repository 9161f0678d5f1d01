#include <array>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "tools/sim/figures/claims.h"
#include "tools/sim/figures/figure_list.h"
#include "tools/sim/figures/labels.h"
#include "tools/sim/figures/scenarios.h"
#include "tools/sim/simulated_switch.h"

// Table 3: two models that swap through one PCIe switch, without a scheduler.
namespace torpor::sim {
namespace {

constexpr std::size_t kCount = 3;
constexpr const char* kNothing = "nothing";
constexpr std::array<const char*, kCount> kModels = {"densenet-169", "resnet-152", "bert-qa"};
// Row: the measured model; column: the model swapping beside. On the diagonal the model is alone
// and takes host_ms, an input (Table 4): our difference there is the one between the paper's two
// tables.
constexpr double kPaperMs[kCount][kCount] = {{27, 27, 27}, {31, 29, 43}, {166, 240, 149}};
constexpr double kTolerance = 0.15;
constexpr Duration kLength = std::chrono::minutes(1);

// Executes a model again and again on one GPU, swapped in from the host each time.
class Loop {
 public:
  Loop(const Profiles& profiles, const ModelProfile& model, std::size_t gpu, SimulatedSwitch& links)
      : model_(model),
        transfer_(profiles.HostTransfer(model)),
        rest_(profiles.HostRest(model)),
        gpu_(gpu),
        links_(links) {}

  // Starts an execution and the transfer of the image.
  void Begin(TimePoint now) {
    begin_ = now;
    end_.reset();
    links_.Begin(gpu_, gpu_, model_.parameters, now);
  }
  // Called when the last byte of the image has come; sets end().
  void OnArrival(TimePoint now) {
    end_ = ExecutionEnd(begin_, model_.resident, {begin_, now, transfer_}, rest_);
  }
  // Counts an execution and begins the next.
  void OnEnd(TimePoint now) {
    sum_ += now - begin_;
    ++count_;
    Begin(now);
  }

  std::optional<TimePoint> end() const { return end_; }
  // Mean time of the ended executions; at least one must have ended.
  double mean_ms() const { return ToMilliseconds(sum_) / static_cast<double>(count_); }

 private:
  const ModelProfile& model_;
  const Duration transfer_;
  const Duration rest_;
  const std::size_t gpu_;
  SimulatedSwitch& links_;
  TimePoint begin_;
  std::optional<TimePoint> end_;  // once all has come
  Duration sum_{};
  std::size_t count_ = 0;
};

// The loop that ends first; null while all wait for transfers.
Loop* FirstToEnd(std::vector<Loop>& loops) {
  Loop* first = nullptr;
  for (Loop& loop : loops) {
    if (loop.end() && (first == nullptr || *loop.end() < *first->end())) first = &loop;
  }
  return first;
}

// Mean of the first loop's times, while all run behind one switch.
double Run(std::vector<Loop>& loops, SimulatedSwitch& links) {
  TimePoint now{};
  for (Loop& loop : loops) loop.Begin(now);
  while (now < TimePoint() + kLength) {
    Loop* const first = FirstToEnd(loops);
    const auto arrival = links.NextEnd();
    if (first != nullptr && (!arrival || *first->end() < arrival->at)) {
      now = *first->end();
      first->OnEnd(now);
    } else if (arrival) {
      now = arrival->at;
      links.Remove(arrival->transfer, now);
      loops[arrival->transfer].OnArrival(now);
    }
  }
  return loops.front().mean_ms();
}

// Measures the model of label "model" while the model of label "beside", if any, runs on the second
// GPU.
Json MeasureAny(const Testbed& testbed, const Json& labels, std::uint64_t) {
  const Profiles& profiles = *testbed.options.profiles;
  const NodeModel::Switch& entry = testbed.node.switches[testbed.node.gpus.front().pcie_switch];
  SimulatedSwitch links(entry.gpu_links, entry.bytes_per_s);
  std::vector<Loop> loops;
  loops.reserve(2);
  for (const char* const label : {"model", "beside"}) {
    const auto model = labels.at(label).get<std::string>();
    if (model == kNothing) continue;
    loops.emplace_back(profiles, profiles.models[ModelNamed(profiles, model)], loops.size(), links);
  }
  return {{"ms", Run(loops, links)}};
}

// Returns the labels of a cell; on the diagonal no model runs beside.
Json LabelsOf(std::size_t row, std::size_t column) {
  return {{"system", "torpor"},
          {"model", kModels[row]},
          {"beside", row == column ? kNothing : kModels[column]}};
}

// Does something with each row and column of the table.
template <typename Do>
void ForEachCell(const Do& with_cell) {
  for (std::size_t row = 0; row < kCount; ++row) {
    for (std::size_t column = 0; column < kCount; ++column) with_cell(row, column);
  }
}

// Compares each measured cell with the paper's time.
std::vector<Finding> Findings(const std::vector<Json>& rows) {
  std::vector<Finding> findings;
  ForEachCell([&](std::size_t row, std::size_t column) {
    const Json* const found = FindRow(rows, LabelsOf(row, column));
    if (found == nullptr) return;
    const double ms = found->at("ms").get<double>();
    const double paper = kPaperMs[row][column];
    const double off = ms / paper - 1;
    findings.push_back(
        {absl::StrCat(kModels[row], row == column ? " alone (input)" : " beside ",
                      row == column ? "" : kModels[column], ": ", paper, " ms within 15%"),
         off >= -kTolerance && off <= kTolerance,
         absl::StrCat(Number(ms, 1), " ms, ", Number(off * 100, 1), "%")});
  });
  return findings;
}

}  // namespace

Figure MakeTable3(const FigureOptions& options) {
  Figure figure;
  figure.name = "table 3";
  figure.number = 3;
  figure.title = "Latency while another model is swapped through the same PCIe switch";
  figure.setting = "2 GPUs behind one switch; every request swaps its model in from the host.";
  figure.columns = {{"ms", "ms", 1}};
  Axis cells;
  ForEachCell([&](std::size_t row, std::size_t column) {
    cells.push_back(LabelsOf(row, column));
    figure.paper.push_back({cells.back(), absl::StrCat(kPaperMs[row][column])});
  });
  figure.cases = CasesOf(MakeTestbed(options, "unlinked-2gpu"), {cells}, MeasureAny);
  figure.findings = Findings;
  return figure;
}

}  // namespace torpor::sim

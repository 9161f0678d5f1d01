#include "tools/sim/figures/case_runner.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>

#include "absl/synchronization/mutex.h"

namespace torpor::sim {
namespace {

// The element `key` of every measure.
std::vector<Json> ElementsAt(const std::vector<Json>& measures, const auto& key) {
  std::vector<Json> elements;
  elements.reserve(measures.size());
  for (const Json& measure : measures) elements.push_back(measure.at(key));
  return elements;
}

// Threads that take case after case and seed after seed from one counter. Measures keep the place
// of case and seed, so results do not depend on the number of threads.
class Workers {
 public:
  Workers(const std::vector<Case>& cases, const CaseRun& run)
      : cases_(cases), run_(run), measures_(cases.size() * run.seeds) {}

  std::vector<Json> Run() {
    const std::size_t count = std::clamp<std::size_t>(run_.threads, 1, measures_.size() + 1);
    std::vector<std::thread> threads;
    threads.reserve(count - 1);
    for (std::size_t i = 1; i < count; ++i) threads.emplace_back([this] { Work(); });
    Work();
    for (std::thread& thread : threads) thread.join();
    return std::move(measures_);
  }

 private:
  // Runs tasks until none is left. Called by every thread; `progress` runs under the mutex.
  void Work() {
    while (true) {
      // Later cases are larger and go first, so that no thread is left alone with a large one.
      const std::size_t turn = next_.fetch_add(1);
      if (turn >= measures_.size()) return;
      const std::size_t task = measures_.size() - 1 - turn;
      measures_[task] = cases_[task / run_.seeds].measure(run_.first_seed + task % run_.seeds);
      if (!run_.progress) continue;
      const absl::MutexLock lock(&mutex_);
      run_.progress(++done_, measures_.size());
    }
  }

  const std::vector<Case>& cases_;
  const CaseRun& run_;
  std::vector<Json> measures_;  // each written by one thread
  std::atomic<std::size_t> next_{0};
  absl::Mutex mutex_;
  std::size_t done_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

Json MeanOf(const std::vector<Json>& measures) {
  const Json& first = measures.front();
  if (first.is_object()) {
    Json mean = Json::object();
    for (const auto& [key, value] : first.items()) mean[key] = MeanOf(ElementsAt(measures, key));
    return mean;
  }
  if (first.is_array()) {
    Json mean = Json::array();
    for (std::size_t i = 0; i < first.size(); ++i) mean.push_back(MeanOf(ElementsAt(measures, i)));
    return mean;
  }
  if (!first.is_number()) return first;
  double sum = 0;
  for (const Json& measure : measures) sum += measure.get<double>();
  return sum / static_cast<double>(measures.size());
}

std::vector<Json> RunCases(const std::vector<Case>& cases, const CaseRun& run) {
  const std::vector<Json> measures = Workers(cases, run).Run();
  std::vector<Json> rows;
  rows.reserve(cases.size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto begin = measures.begin() + static_cast<std::ptrdiff_t>(i * run.seeds);
    Json row = cases[i].labels;
    row["seeds"] = run.seeds;
    row.update(MeanOf({begin, begin + static_cast<std::ptrdiff_t>(run.seeds)}));
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace torpor::sim

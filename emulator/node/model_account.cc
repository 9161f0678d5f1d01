#include "emulator/node/model_account.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <utility>

namespace torpor::emulator {
namespace {

constexpr std::memory_order kRelaxed = std::memory_order_relaxed;

void Clear(ModelledWorkCounters& counters) {
  counters.count.store(0, kRelaxed);
  counters.modelled_ns.store(0, kRelaxed);
  counters.real_ns.store(0, kRelaxed);
}

// Reads counters that other processes may change meanwhile.
ModelledWork Sum(const ModelledWorkCounters& counters) {
  return {.count = counters.count.load(kRelaxed),
          .modelled = Duration(counters.modelled_ns.load(kRelaxed)),
          .real = Duration(counters.real_ns.load(kRelaxed))};
}

std::string Describe(const char* what, const ModelledWork& work) {
  char text[160];
  std::snprintf(text, sizeof(text), "%llu %s took %.1f ms of modelled %.1f ms (%.1f%% behind)",
                static_cast<unsigned long long>(work.count), what, ToMilliseconds(work.real),
                ToMilliseconds(work.modelled), work.behind() * 100);
  return text;
}

}  // namespace

void Note(ModelledWorkCounters& counters, Duration modelled, Duration real) {
  counters.count.fetch_add(1, kRelaxed);
  counters.modelled_ns.fetch_add(modelled.count(), kRelaxed);
  counters.real_ns.fetch_add(real.count(), kRelaxed);
}

double ModelledWork::behind() const {
  if (modelled <= Duration::zero()) return 0;
  return std::max(0.0, ToSeconds(real) / ToSeconds(modelled) - 1);
}

std::string ModelReport::ToText() const {
  if (copies.count + kernels.count == 0) {
    return "NOTHING MODELLED: no copy over a link with a rate and no kernel with a time was done "
           "on "
           "this node";
  }
  return std::string(is_valid() ? "VALID" : "INVALID") + ": " + Describe("copies", copies) + ", " +
         Describe("kernels", kernels);
}

NodeResult<ModelAccount> ModelAccount::Open(const std::string& path) {
  auto node = NodeFile::Observe(path);
  if (!node.ok()) return node.failure();
  return ModelAccount(std::move(*node));
}

void ModelAccount::Reset() {
  Clear(node_->state().copies_done);
  Clear(node_->state().kernels_done);
}

ModelReport ModelAccount::Read() const {
  return {.copies = Sum(node_->state().copies_done), .kernels = Sum(node_->state().kernels_done)};
}

}  // namespace torpor::emulator

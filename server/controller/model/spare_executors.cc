#include "server/controller/model/spare_executors.h"

#include <utility>

namespace torpor::server {

void SpareExecutors::OnAdopted(GpuIndex gpu, std::uint64_t epoch, std::int64_t process) {
  spares_[gpu] = {.epoch = epoch, .adopted_process = process};
}

bool SpareExecutors::Register(const std::shared_ptr<ExecutorChannel>& link,
                              const v1::ExecutorMessage::Register& what) {
  const auto found = spares_.find(GpuIndex{what.gpu()});
  if (found == spares_.end()) return false;
  Spare& spare = found->second;
  const bool is_it = spare.adopted_process != 0 ? spare.adopted_process == what.pid()
                                                : spare.epoch == what.epoch();
  if (!is_it) return false;
  spare.link = link;
  spare.what = what;
  return true;
}

std::optional<SpareExecutors::Spare> SpareExecutors::Take(GpuIndex gpu, std::uint64_t epoch) {
  const auto found = spares_.find(gpu);
  if (found == spares_.end() || found->second.epoch != epoch) return std::nullopt;
  Spare spare = std::move(found->second);
  spares_.erase(found);
  return spare;
}

const SpareExecutors::Spare* SpareExecutors::Ready(GpuIndex gpu) const {
  const auto found = spares_.find(gpu);
  return found == spares_.end() || !found->second.link ? nullptr : &found->second;
}

bool SpareExecutors::Has(const std::shared_ptr<ExecutorChannel>& link) const {
  return OfLink(link).has_value();
}

void SpareExecutors::OnClosed(const std::shared_ptr<ExecutorChannel>& link) {
  const std::optional<GpuIndex> gpu = OfLink(link);
  if (!gpu) return;
  Spare& spare = spares_.at(*gpu);
  spare.link.reset();
  // A process without its stream is useless, even if still running.
  processes_.Kill(*gpu, spare.epoch);
}

std::optional<GpuIndex> SpareExecutors::OfLink(const std::shared_ptr<ExecutorChannel>& link) const {
  for (const auto& [gpu, spare] : spares_) {
    if (spare.link == link) return gpu;
  }
  return std::nullopt;
}

}  // namespace torpor::server

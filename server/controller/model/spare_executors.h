#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "base/ids.h"
#include "server/links/links.h"
#include "server/supervisor/executor_processes.h"

namespace torpor::server {

// Executors that have started, and wait for the executor of their GPU to die. At most one a GPU. On
// the controller's thread.
class SpareExecutors {
 public:
  struct Spare {
    std::uint64_t epoch = 0;
    std::int64_t adopted_process = 0;         // 0: started by this torpord
    std::shared_ptr<ExecutorChannel> link{};  // null until the process has registered
    v1::ExecutorMessage::Register what{};
  };

  // `processes` must outlive the object.
  explicit SpareExecutors(ExecutorProcesses& processes) : processes_(processes) {}

  // Has a spare started for a GPU that is served, and keeps one there until it takes over.
  void KeepFor(GpuIndex gpu) { processes_.KeepSpare(gpu); }
  // A process with this epoch is about to be started.
  void OnStarting(GpuIndex gpu, std::uint64_t epoch) { spares_[gpu] = {.epoch = epoch}; }
  // An earlier torpord's process goes on with this epoch; its own number is another one.
  void OnAdopted(GpuIndex gpu, std::uint64_t epoch, std::int64_t process);
  // The process is ready. False, and nothing is kept, if it is no spare.
  bool Register(const std::shared_ptr<ExecutorChannel>& link,
                const v1::ExecutorMessage::Register& what);
  // Returns the spare of this epoch, which is none from now on.
  std::optional<Spare> Take(GpuIndex gpu, std::uint64_t epoch);

  // Returns null if the GPU has no spare that is ready.
  const Spare* Ready(GpuIndex gpu) const;
  bool Has(const std::shared_ptr<ExecutorChannel>& link) const;
  // Ends the spare whose stream has ended, if the stream is a spare's. The process's end is noticed
  // later.
  void OnClosed(const std::shared_ptr<ExecutorChannel>& link);

 private:
  std::optional<GpuIndex> OfLink(const std::shared_ptr<ExecutorChannel>& link) const;

  ExecutorProcesses& processes_;
  std::map<GpuIndex, Spare> spares_;
};

}  // namespace torpor::server

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "base/mutex.h"

namespace torpor::executor {

// The isolation domain whose sessions this process serves, once a first one has opened. Bytes of a
// domain stay behind in a context, in memory of the driver's, so no process serves two.
// Thread-safe.
class ServedDomain {
 public:
  // Is told the name before the first session opens.
  using OnEntered = std::function<void(const std::string& name)>;

  explicit ServedDomain(OnEntered on_entered) : on_entered_(std::move(on_entered)) {}

  // A session of the domain is to open. FailedPrecondition if one of another domain has.
  absl::Status Enter(const std::string& name);

 private:
  const OnEntered on_entered_;
  Mutex mutex_;
  std::optional<std::string> name_ ABSL_GUARDED_BY(mutex_);
};

// Whether kernels of the domain's sessions are kept from other sessions' memory.
bool IsIsolated(const std::string& domain);

// Returns a number by which the memory's owner tells domains apart; 0 for one that is not isolated.
std::uint64_t NumberOf(const std::string& domain);

}  // namespace torpor::executor

#pragma once

#include <cstdint>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "memory/extent_set.h"
#include "server/executor/gpu/address_window.h"

namespace torpor::executor {

// The parts of one memory file that are mapped in a window. Parts are whole units and stay until
// the object is destroyed. Thread-safe.
class FileParts {
 public:
  // Maps nothing yet. `window` must outlive the object; `unit` is whole pages.
  FileParts(const AddressWindow& window, UniqueFd file, Bytes unit)
      : window_(window), file_(std::move(file)), unit_(unit) {}
  ~FileParts();
  FileParts(const FileParts&) = delete;
  FileParts& operator=(const FileParts&) = delete;

  // Maps all units with bytes of `extent`, which the session owns.
  absl::Status Ensure(memory::Extent extent);
  // Whether the extent is mapped.
  bool Holds(memory::Extent extent) const;

  std::uint8_t* data() const { return window_.data(); }

 private:
  const AddressWindow& window_;
  const UniqueFd file_;
  const Bytes unit_;
  mutable Mutex mutex_;
  memory::ExtentSet mapped_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace torpor::executor

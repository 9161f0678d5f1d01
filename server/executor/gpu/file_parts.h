#pragma once

#include <cstdint>
#include <utility>
#include <vector>

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
  // Maps nothing yet. `place`: of the whole file in the window, which must outlive the object;
  // `unit` is whole pages.
  FileParts(UniqueFd file, const AddressWindow& window, memory::Extent place, Bytes unit)
      : file_(std::move(file)), window_(window), place_(place), unit_(unit) {}
  ~FileParts();
  FileParts(const FileParts&) = delete;
  FileParts& operator=(const FileParts&) = delete;

  // Maps all units with bytes of `extent`, which the session owns.
  absl::Status Ensure(memory::Extent extent);
  // Whether the extent is mapped.
  bool Holds(memory::Extent extent) const;

  // Returns the parts of the file that have pages, mapped or not, ascending; all else reads as
  // zero. If the system cannot tell, the mapped parts.
  std::vector<memory::Extent> WithPages() const;
  // Returns the bytes of the file's pages.
  Bytes PageBytes() const;

  // Returns the address of the file's first byte.
  std::uint8_t* data() const { return window_.data() + place_.begin; }

 private:
  // Returns where a part of the file lies in the window.
  memory::Extent PlaceOf(memory::Extent part) const {
    return {place_.begin + part.begin, place_.begin + part.end};
  }

  const UniqueFd file_;
  const AddressWindow& window_;
  const memory::Extent place_;
  const Bytes unit_;
  mutable Mutex mutex_;
  memory::ExtentSet mapped_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace torpor::executor

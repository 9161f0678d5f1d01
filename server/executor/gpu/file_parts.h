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

// The parts of a section of a memory file that are mapped in a window. Extents are bytes from the
// section's begin. Parts are whole units and stay until the object is destroyed. Thread-safe.
class FileParts {
 public:
  // Maps nothing yet. The section begins at byte `from` of the file. `place`: of the whole section
  // in the window, which must outlive the object; `from` and `unit` are whole pages.
  FileParts(UniqueFd file, Bytes from, const AddressWindow& window, memory::Extent place,
            Bytes unit)
      : file_(std::move(file)), from_(from), window_(window), place_(place), unit_(unit) {}
  ~FileParts();
  FileParts(const FileParts&) = delete;
  FileParts& operator=(const FileParts&) = delete;

  // Maps all units with bytes of `extent`, which the session owns.
  absl::Status Ensure(memory::Extent extent);
  // Whether the extent is mapped.
  bool Holds(memory::Extent extent) const;

  // Returns the parts of the section that have pages, mapped or not, ascending; all else reads as
  // zero. If the system cannot tell, the mapped parts.
  std::vector<memory::Extent> WithPages() const;
  // Returns the bytes of the whole file's pages.
  Bytes PageBytes() const;

  // Returns the address of the section's first byte.
  std::uint8_t* data() const { return window_.data() + place_.begin; }

 private:
  // Returns where a part lies in the window.
  memory::Extent PlaceOf(memory::Extent part) const {
    return {place_.begin + part.begin, place_.begin + part.end};
  }

  const UniqueFd file_;
  const Bytes from_;
  const AddressWindow& window_;
  const memory::Extent place_;
  const Bytes unit_;
  mutable Mutex mutex_;
  memory::ExtentSet mapped_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace torpor::executor

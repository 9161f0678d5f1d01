#include "server/executor/gpu/file_parts.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace torpor::executor {

FileParts::~FileParts() {
  MutexLock lock(&mutex_);
  for (const memory::Extent& part : mapped_.extents()) window_.Unmap(PlaceOf(part));
}

absl::Status FileParts::Ensure(memory::Extent extent) {
  if (extent.begin >= extent.end || extent.end > place_.bytes()) {
    return absl::InvalidArgumentError(absl::StrCat("[", extent.begin, ", ", extent.end,
                                                   ") is not inside a memory file's ", place_.bytes(),
                                                   " bytes"));
  }
  MutexLock lock(&mutex_);
  if (mapped_.Contains(extent)) return absl::OkStatus();
  const memory::Extent whole{RoundDown(extent.begin, unit_),
                             std::min(RoundUp(extent.end, unit_), place_.bytes())};
  for (const memory::Extent& gap : mapped_.Gaps(whole)) {
    TORPOR_RETURN_IF_ERROR(window_.Map(file_, from_ + gap.begin, PlaceOf(gap)));
    mapped_.Add(gap);
  }
  return absl::OkStatus();
}

bool FileParts::Holds(memory::Extent extent) const {
  ReaderMutexLock lock(&mutex_);
  return mapped_.Contains(extent);
}

}  // namespace torpor::executor

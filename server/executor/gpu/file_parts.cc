#include "server/executor/gpu/file_parts.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

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
                                                   ") is not inside a memory file's ",
                                                   place_.bytes(), " bytes"));
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

std::vector<memory::Extent> FileParts::WithPages() const {
  std::vector<memory::Extent> parts;
  Bytes end = 0;
  while (end < place_.bytes()) {
    const off_t data = lseek(file_.get(), static_cast<off_t>(from_ + end), SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;  // only a hole follows
    const off_t hole = data < 0 ? data : lseek(file_.get(), data, SEEK_HOLE);
    if (hole < 0) {
      ReaderMutexLock lock(&mutex_);
      return mapped_.extents();
    }
    const Bytes begin = static_cast<Bytes>(data) - from_;
    end = std::min(static_cast<Bytes>(hole) - from_, place_.bytes());
    if (begin < end) parts.push_back({begin, end});
  }
  return parts;
}

Bytes FileParts::PageBytes() const {
  constexpr Bytes kStatBlockBytes = 512;  // the unit of st_blocks, whatever the page size
  struct stat status = {};
  if (fstat(file_.get(), &status) != 0) return 0;
  return static_cast<Bytes>(status.st_blocks) * kStatBlockBytes;
}

}  // namespace torpor::executor

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
                                                   ") is not inside a file of ", place_.bytes(),
                                                   " bytes"));
  }
  MutexLock lock(&mutex_);
  if (mapped_.Contains(extent)) return absl::OkStatus();
  const memory::Extent whole{RoundDown(extent.begin, unit_),
                             std::min(RoundUp(extent.end, unit_), place_.bytes())};
  for (const memory::Extent& gap : mapped_.Gaps(whole)) {
    TORPOR_RETURN_IF_ERROR(window_.Map(file_, gap.begin, PlaceOf(gap)));
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
    const off_t begin = lseek(file_.get(), static_cast<off_t>(end), SEEK_DATA);
    if (begin < 0 && errno == ENXIO) break;  // only a hole follows
    const off_t hole = begin < 0 ? begin : lseek(file_.get(), begin, SEEK_HOLE);
    if (hole < 0) {
      ReaderMutexLock lock(&mutex_);
      return mapped_.extents();
    }
    end = std::min(static_cast<Bytes>(hole), place_.bytes());
    if (static_cast<Bytes>(begin) < end) parts.push_back({static_cast<Bytes>(begin), end});
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

#include "server/executor/runtime/upload_saves.h"

#include "base/status_macros.h"

namespace torpor::executor {

UploadSaves::~UploadSaves() {
  for (const CUevent event : pending_) events_.Return(event);
}

// Bytes of a command or of the window are final, whatever else is under way. Pinned memory may be
// written by earlier work, which a program without races has put in order before the upload: behind
// an idle stream, all of that is done.
//
// Earlier work on the GPU's target needs no care: the copy that is about to be enqueued comes
// later, and makes the GPU's bytes those of the image. But an arrival reads the image, and an
// enqueued save writes older bytes.
bool UploadSaves::MayCopyNow(wire::Payload payload, Bytes bytes, CUstream stream) {
  if (image_.arrival().is_pending() || HasPending()) return false;
  if (payload != wire::Payload::kArena) return true;
  return bytes <= kLongestPinned && device_.driver().StreamQuery(stream) == CUDA_SUCCESS;
}

absl::Status UploadSaves::Enqueue(std::uint64_t address, Bytes bytes, CUstream stream) {
  TORPOR_RETURN_IF_ERROR(image_.SaveRange(address, bytes, stream));
  return NotePending(stream);
}

// Saves of several streams may end in any order: looks at the oldest first, since all must be done.
bool UploadSaves::HasPending() {
  while (!pending_.empty() && device_.driver().EventQuery(pending_.front()) == CUDA_SUCCESS) {
    events_.Return(pending_.front());
    pending_.pop_front();
  }
  return !pending_.empty();
}

absl::Status UploadSaves::NotePending(CUstream stream) {
  TORPOR_ASSIGN_OR_RETURN(const CUevent event, events_.Take());
  pending_.push_back(event);
  return device_.Status(device_.driver().EventRecord(event, stream), "cuEventRecord");
}

}  // namespace torpor::executor

#include "server/executor/runtime/upload_saves.h"

#include "base/status_macros.h"

namespace torpor::executor {

UploadSaves::~UploadSaves() {
  for (const CUevent event : pending_) events_.Return(event);
}

// The write-back finds an upload that nobody has saved by the hashes of the blocks, as the image is
// dirty and the states of the blocks still describe the image's bytes.
UploadSaves::Saver UploadSaves::SaverOf(std::uint64_t address, Bytes bytes, wire::Payload payload,
                                        CUstream stream) {
  if (!image_.Contains(address, bytes)) return Saver::kWriteBack;
  if (is_stateless_) return MayCopyNow(payload, bytes, stream) ? Saver::kProcessor : Saver::kGpu;
  const bool is_final = image_.uploads().IsFinal(address, bytes);
  return is_final && MayCopyNow(payload, bytes, stream) ? Saver::kProcessor : Saver::kWriteBack;
}

absl::Status UploadSaves::Save(Saver saver, std::uint64_t address,
                               std::span<const std::uint8_t> bytes, CUstream stream) {
  switch (saver) {
    case Saver::kProcessor:
      return image_.uploads().Save(address, bytes);
    case Saver::kGpu:
      TORPOR_RETURN_IF_ERROR(image_.uploads().SaveBehind(stream, address, bytes.size()));
      return NotePending(stream);
    case Saver::kWriteBack:
      image_.MarkDirty();
  }
  return absl::OkStatus();
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

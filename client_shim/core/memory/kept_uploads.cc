#include "client_shim/core/memory/kept_uploads.h"

namespace torpor::shim {

void KeptUploads::NoteSent(std::uint64_t number, const WindowPiece& piece, bool may_be_saved) {
  const std::lock_guard lock(mutex_);
  uploads_[number] = {piece, may_be_saved, {}};
  at_offset_[piece.offset] = number;
}

// The executor's word comes before the mark that says that the piece was read.
bool KeptUploads::IsSaved(const Upload& upload) const {
  return upload.may_be_saved && slots_.Value(upload.piece.slot) >= upload.piece.value &&
         slots_.IsSavedUpload(upload.piece.slot);
}

void KeptUploads::BeforeReuse(std::uint64_t offset) {
  const std::lock_guard lock(mutex_);
  const auto at = at_offset_.find(offset);
  if (at == at_offset_.end()) return;
  const auto found = uploads_.find(at->second);
  at_offset_.erase(at);
  if (found == uploads_.end()) return;
  Upload& upload = found->second;
  if (IsSaved(upload)) {
    uploads_.erase(found);
    return;
  }
  upload.copy.assign(upload.piece.data, upload.piece.data + upload.piece.bytes);
  upload.piece.data = nullptr;
  bytes_.fetch_add(upload.copy.size(), std::memory_order_relaxed);
}

std::span<std::uint8_t> KeptUploads::Keep(std::uint64_t number, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  Upload& upload = uploads_[number];
  upload.copy.resize(bytes);
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  return upload.copy;
}

std::optional<std::vector<std::uint8_t>> KeptUploads::Find(std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  const auto found = uploads_.find(number);
  if (found == uploads_.end()) return std::nullopt;
  const Upload& upload = found->second;
  if (upload.piece.data == nullptr) return upload.copy;
  if (IsSaved(upload)) return std::nullopt;
  return std::vector<std::uint8_t>(upload.piece.data, upload.piece.data + upload.piece.bytes);
}

void KeptUploads::TrimTo(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto end = uploads_.upper_bound(number);
  for (auto upload = uploads_.begin(); upload != end; ++upload) {
    bytes_.fetch_sub(upload->second.copy.size(), std::memory_order_relaxed);
    if (upload->second.piece.data != nullptr) at_offset_.erase(upload->second.piece.offset);
  }
  uploads_.erase(uploads_.begin(), end);
}

}  // namespace torpor::shim

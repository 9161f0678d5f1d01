#include "server/executor/session_memory/peer_image_copy.h"

#include "base/status_macros.h"

namespace torpor::executor {

PeerImageCopy::~PeerImageCopy() {
  if (pool_ != nullptr) pool_->LetGo(used_);
}

absl::StatusOr<std::map<std::uint64_t, CUdeviceptr>> PeerImageCopy::Reach(
    const std::vector<std::uint64_t>& chunks) {
  TORPOR_ASSIGN_OR_RETURN(const auto located, owner_.Ask(chunks, ChunkUse::kLocate));
  TORPOR_RETURN_IF_ERROR(FindPool());
  TORPOR_RETURN_IF_ERROR(Use(located));
  std::vector<std::uint64_t> missing;
  for (const auto& [index, chunk] : located) {
    const PeerPool::Number number = chunk.number;
    TORPOR_ASSIGN_OR_RETURN(const bool is_mapped, pool_->Has({&number, 1}));
    if (!is_mapped) missing.push_back(index);
  }
  if (!missing.empty()) TORPOR_RETURN_IF_ERROR(Import(missing));
  std::map<std::uint64_t, CUdeviceptr> addresses;
  for (const auto& [index, chunk] : located) {
    addresses.emplace(index, pool_->AddressOf(chunk.number));
  }
  return addresses;
}

absl::Status PeerImageCopy::FindPool() {
  if (pool_ == nullptr) {
    TORPOR_ASSIGN_OR_RETURN(pool_,
                            pools_.Get(owner_.socket_path(), owner_.pool(), owner_.connection()));
  }
  if (pool_->description() == owner_.pool()) return absl::OkStatus();
  return absl::DataLossError("a peer describes two pools");
}

absl::Status PeerImageCopy::Use(const std::map<std::uint64_t, PeerChunk>& located) {
  std::vector<PeerPool::Number> numbers;
  numbers.reserve(located.size());
  for (const auto& [index, chunk] : located) numbers.push_back(chunk.number);
  TORPOR_RETURN_IF_ERROR(pool_->Use(numbers));
  used_.insert(used_.end(), numbers.begin(), numbers.end());
  return absl::OkStatus();
}

absl::Status PeerImageCopy::Import(const std::vector<std::uint64_t>& chunks) {
  TORPOR_ASSIGN_OR_RETURN(auto fetched, owner_.Ask(chunks, ChunkUse::kCopy));
  std::map<PeerPool::Number, UniqueFd> descriptors;
  for (auto& [index, chunk] : fetched) {
    descriptors.emplace(chunk.number, std::move(chunk.descriptor));
  }
  // The owner keeps the image in place, and must answer as before.
  if (descriptors.size() != chunks.size()) return absl::DataLossError("a peer's chunks have gone");
  return pool_->Import(descriptors);
}

}  // namespace torpor::executor

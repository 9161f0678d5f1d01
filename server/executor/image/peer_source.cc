#include "server/executor/image/peer_source.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "server/executor/image/peer_socket.h"

namespace torpor::executor {

PeerSource::PeerSource(std::unique_ptr<PeerCopy> copy, std::vector<std::uint64_t> chunks,
                       Bytes chunk_bytes)
    : copy_(std::move(copy)), chunks_(std::move(chunks)), chunk_bytes_(chunk_bytes) {
  TORPOR_CHECK(!chunks_.empty());
}

std::vector<BackedPart> PeerSource::Reach(memory::Extent extent) {
  while (!is_lost_ && !Knows(extent)) {
    const absl::Status more = AskForMore();
    if (more.ok()) continue;
    is_lost_ = true;
    spdlog::warn("the rest of an image comes from the host, not from another GPU: {}",
                 more.ToString());
  }
  return is_lost_ ? std::vector<BackedPart>() : PartsOf(extent);
}

bool PeerSource::Knows(memory::Extent extent) const {
  for (Bytes chunk = extent.begin / chunk_bytes_; chunk * chunk_bytes_ < extent.end; ++chunk) {
    if (!addresses_.contains(chunk)) return false;
  }
  return true;
}

std::vector<BackedPart> PeerSource::PartsOf(memory::Extent extent) const {
  std::vector<BackedPart> parts;
  for (Bytes begin = extent.begin; begin < extent.end;) {
    const Bytes chunk = begin / chunk_bytes_;
    const Bytes end = std::min(extent.end, (chunk + 1) * chunk_bytes_);
    const CUdeviceptr address = addresses_.at(chunk) + begin % chunk_bytes_;
    const bool goes_on =
        !parts.empty() && parts.back().address + parts.back().extent.bytes() == address;
    if (goes_on) {
      parts.back().extent.end = end;
    } else {
      parts.push_back({{begin, end}, address});
    }
    begin = end;
  }
  return parts;
}

absl::Status PeerSource::AskForMore() {
  const std::size_t count = std::min(next_count_, chunks_.size() - asked_);
  if (count == 0) return absl::NotFoundError("bytes outside of the chunks that were planned");
  const auto first = chunks_.begin() + static_cast<std::ptrdiff_t>(asked_);
  std::vector<std::uint64_t> wanted(first, first + static_cast<std::ptrdiff_t>(count));
  std::ranges::sort(wanted);
  TORPOR_ASSIGN_OR_RETURN(const auto reached, copy_->Reach(wanted));
  for (const std::uint64_t chunk : wanted) {
    const auto found = reached.find(chunk);
    if (found == reached.end()) {
      return absl::NotFoundError(absl::StrCat("chunk ", chunk, " is not there"));
    }
    addresses_.insert(*found);
  }
  asked_ += count;
  next_count_ = std::min<std::size_t>(2 * next_count_, kMaxChunks);
  return absl::OkStatus();
}

}  // namespace torpor::executor

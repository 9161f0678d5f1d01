#include "server/executor/image/peer_source.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "server/executor/gpu/device_mapping.h"
#include "server/executor/image/peer_socket.h"

namespace torpor::executor {

absl::StatusOr<std::unique_ptr<PeerSource>> PeerSource::Open(const Device& device,
                                                             ChunkOwner& owner,
                                                             std::vector<std::uint64_t> chunks,
                                                             Bytes chunk_bytes) {
  TORPOR_CHECK(!chunks.empty());
  std::unique_ptr<PeerSource> source(new PeerSource(device, owner, std::move(chunks), chunk_bytes));
  TORPOR_RETURN_IF_ERROR(source->Reserve());
  return source;
}

PeerSource::PeerSource(const Device& device, ChunkOwner& owner, std::vector<std::uint64_t> chunks,
                       Bytes chunk_bytes)
    : device_(device),
      owner_(owner),
      chunks_(std::move(chunks)),
      chunk_bytes_(chunk_bytes),
      begin_(*std::ranges::min_element(chunks_) * chunk_bytes),
      end_((*std::ranges::max_element(chunks_) + 1) * chunk_bytes) {}

absl::Status PeerSource::Reserve() {
  return device_.Status(
      device_.driver().MemAddressReserve(&base_, end_ - begin_, chunk_bytes_, 0, 0),
      "cuMemAddressReserve for a peer's copy");
}

PeerSource::~PeerSource() {
  const CudaDriver& driver = device_.driver();
  for (const memory::Extent& run : mapped_.extents()) {
    driver.MemUnmap(AddressOf(run.begin), run.bytes());
  }
  if (base_ != 0) driver.MemAddressFree(base_, end_ - begin_);
}

CUdeviceptr PeerSource::Reach(memory::Extent extent) {
  while (!is_lost_ && !mapped_.Contains(extent)) {
    const absl::Status fetched = FetchMore();
    if (fetched.ok()) continue;
    is_lost_ = true;
    spdlog::warn("the rest of an image comes from the host, not from another GPU: {}",
                 fetched.ToString());
  }
  return is_lost_ ? 0 : AddressOf(extent.begin);
}

absl::Status PeerSource::FetchMore() {
  const std::size_t count = std::min(next_count_, chunks_.size() - asked_);
  if (count == 0) return absl::NotFoundError("bytes outside of the chunks that were planned");
  const auto first = chunks_.begin() + static_cast<std::ptrdiff_t>(asked_);
  std::vector<std::uint64_t> wanted(first, first + static_cast<std::ptrdiff_t>(count));
  std::ranges::sort(wanted);
  TORPOR_ASSIGN_OR_RETURN(const auto fetched, owner_.Fetch(wanted));
  memory::ExtentSet fresh;
  for (const std::uint64_t chunk : wanted) {
    const auto found = fetched.find(chunk);
    if (found == fetched.end()) {
      return absl::NotFoundError(absl::StrCat("chunk ", chunk, " is not there"));
    }
    const memory::Extent extent{chunk * chunk_bytes_, (chunk + 1) * chunk_bytes_};
    TORPOR_RETURN_IF_ERROR(
        MapImported(device_, found->second, AddressOf(extent.begin), extent.bytes()));
    mapped_.Add(extent);
    fresh.Add(extent);
  }
  for (const memory::Extent& run : fresh.extents()) {
    TORPOR_RETURN_IF_ERROR(AllowAccess(device_, AddressOf(run.begin), run.bytes()));
  }
  asked_ += count;
  next_count_ = std::min<std::size_t>(2 * next_count_, kMaxChunks);
  return absl::OkStatus();
}

}  // namespace torpor::executor

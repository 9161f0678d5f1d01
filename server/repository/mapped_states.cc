#include "server/repository/mapped_states.h"

#include <sys/mman.h>

#include <cerrno>

#include "proto/wire/descriptor_socket.h"

namespace torpor::server {
namespace {

constexpr Bytes kPageBytes = 4 * kKiB;
constexpr Bytes kImageBytesPerPage =
    kPageBytes / memory::BlockStates::kBytesPerBlock * wire::kImageBlockBytes;

}  // namespace

absl::StatusOr<MappedStates> MappedStates::Map(const MemoryFile& file,
                                               memory::CheckpointRecord& checkpoint,
                                               memory::Extent extent) {
  const Bytes begin = RoundDown(extent.begin, kImageBytesPerPage);
  const memory::Extent states =
      memory::BlockStates::StatesOf({begin, extent.end}, wire::kImageBlockBytes);
  void* const records = mmap(nullptr, states.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED,
                             file.descriptor(), static_cast<off_t>(states.begin));
  if (records == MAP_FAILED) return absl::ErrnoToStatus(errno, "cannot map the states of blocks");
  return MappedStates({static_cast<memory::BlockRecord*>(records),
                       states.bytes() / memory::BlockStates::kBytesPerBlock},
                      begin / wire::kImageBlockBytes, checkpoint);
}

MappedStates::MappedStates(std::span<memory::BlockRecord> records, std::size_t first_block,
                           memory::CheckpointRecord& checkpoint)
    : records_(records),
      first_block_(first_block),
      states_(records, checkpoint, wire::kImageBlockBytes) {}

MappedStates::~MappedStates() {
  if (!records_.empty()) munmap(records_.data(), records_.size_bytes());
}

}  // namespace torpor::server

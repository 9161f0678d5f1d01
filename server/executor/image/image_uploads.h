#pragma once

#include <cuda.h>

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "base/units.h"
#include "memory/extent_set.h"
#include "server/executor/image/fresh_memory.h"
#include "server/executor/image/host_image.h"
#include "server/executor/image/image_addresses.h"
#include "server/executor/image/image_arrival.h"
#include "server/executor/image/image_blocks.h"
#include "server/executor/image/image_copies.h"
#include "server/executor/image/image_touches.h"

namespace torpor::executor {

// Uploads by the client to an image's resident memory: what is known of their bytes, and their way
// into the host image beside the GPU's memory (docs/decisions/0004). Addresses are the client's.
// For the thread that executes the session's calls, except fresh().
class ImageUploads {
 public:
  // The image's; all must outlive the ImageUploads.
  struct Parts {
    const ImageAddresses& addresses;
    ImageArrival& arrival;
    ImageTouches& touches;
    ImageBlocks& blocks;
    const HostImage& host;
    const ImageCopies& copies;
  };

  explicit ImageUploads(const Parts& parts) : parts_(parts) {}

  // Notes that `bytes` are about to be uploaded to `address`. Returns whether the bytes are known
  // to hold addresses of the session's memory; scans only if that matters.
  bool Note(std::uint64_t address, std::span<const std::uint8_t> bytes);
  // Notes an upload of `bytes` from `address` on without a scan.
  void NoteUnseen(std::uint64_t address, Bytes bytes);

  // The memory that no command but uploads has used since the last checkpoint. Any thread.
  FreshMemory& fresh() { return fresh_; }
  // Whether an upload is final once its bytes are in the host image: a return to the last
  // checkpoint keeps the bytes, and a replay from there uses none earlier.
  bool IsFinal(std::uint64_t address, Bytes bytes) const;

  // Notes an upload just made that a replay repeats: were a later one to the same bytes final, and
  // so not repeated, the replay would put these over it.
  void NoteRepeated(std::uint64_t address, Bytes bytes) { fresh_.Use(ExtentOf(address, bytes)); }

  // Copies `bytes`, which a stream copies to `address` too, to the host image now. No earlier save
  // and no arrival is under way.
  absl::Status Save(std::uint64_t address, std::span<const std::uint8_t> bytes);
  // Enqueues a copy of [address, address + bytes), just written by the stream, to the host image.
  absl::Status SaveBehind(CUstream stream, std::uint64_t address, Bytes bytes);

 private:
  memory::Extent ExtentOf(std::uint64_t address, Bytes bytes) const {
    const Bytes begin = address - parts_.addresses.base();
    return {begin, begin + bytes};
  }

  const Parts parts_;
  FreshMemory fresh_;
};

}  // namespace torpor::executor

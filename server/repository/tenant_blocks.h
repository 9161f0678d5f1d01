#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "memory/equal_blocks.h"
#include "memory/extent_set.h"
#include "server/repository/session_files.h"

// Blocks of images in the tenant's file, in place of the images' own places.
namespace torpor::server {

// A place in the tenant's file, and what is known of its bytes: BlockStates::kNoContent if nothing.
struct TenantPlace {
  std::size_t place = 0;
  std::uint64_t content = memory::BlockStates::kNoContent;
};

// What an image has of blocks, ascending. A plain record.
struct ImageBlockList {
  // Blocks elsewhere that were copied from the host and not changed since, of known content:
  // weights, most of all.
  std::vector<memory::BlockContent> uploaded;
  // Homes in the tenant's file, of whichever version.
  std::vector<TenantPlace> at_tenant;
};

// Reads the states of the blocks in `segments`, which are the session's. May run at any time: of
// what an executor changes meanwhile, places that are homes no more may still be listed.
absl::StatusOr<ImageBlockList> ListBlocks(const SessionFiles& session,
                                          const std::vector<memory::Extent>& segments);

// Copies the run's blocks to its places (`other`), which no block has as home. No process writes to
// the image.
absl::Status CopyToTenantFile(const SessionFiles& session, const memory::EqualRun& run);

// Runs of blocks after their move to the tenant's file, and the places in the image's files that
// the blocks have left. A plain record.
struct MovedBlocks {
  std::vector<memory::EqualRun> runs;
  // The blocks' former places in the image's file, which executors may have pinned: own places, and
  // places in the annex, as offsets from the annex's begin.
  memory::ExtentSet own;
  memory::ExtentSet annex;
};

// Gives each of the runs' blocks that ListBlocks would still list, and whose bytes are the place's,
// the place as home. No process writes to the image.
absl::StatusOr<MovedBlocks> MoveToTenantFile(const SessionFiles& session,
                                             const std::vector<memory::EqualRun>& runs);

// Gives the pages of former places back to the system. No process has the pages pinned.
absl::Status GiveBackLeft(const SessionFiles& session, const MovedBlocks& moved);

}  // namespace torpor::server

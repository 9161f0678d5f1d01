#pragma once

#include <map>
#include <optional>
#include <set>

#include "base/ids.h"
#include "base/units.h"
#include "server/repository/repository.h"

namespace torpor::server {

// The allocations of one session that other processes of the function may open, by offset in the
// image. An allocation that the owner frees stays until the last opener closes it. Pure
// bookkeeping; on the controller's thread.
class SharedBlocks {
 public:
  enum class FreeTime {
    kNow,
    kWhenClosed,    // Close tells when
    kFreedAlready,  // unknown to the client since an earlier free
  };
  enum class Closed {
    kStillOpen,
    kUnused,  // closed by all openers; the allocation stays
    kFreed,   // closed by all openers and freed by its owner: the memory goes now
  };

  // Returns the token that opens the allocation at `offset`, the same each time.
  SessionKey Share(Bytes offset);
  bool IsFreed(Bytes offset) const;
  // Whether `token` opens the allocation.
  bool Matches(Bytes offset, const SessionKey& token) const;
  // `opener` is the primary session of a process that does not have the block open. The block must
  // be shared and not freed.
  void Open(Bytes offset, SessionId opener);
  // `opener` must have the block open.
  Closed Close(Bytes offset, SessionId opener);
  // The owner frees the allocation, shared or not.
  FreeTime Free(Bytes offset);

  // Whether any process has a block open.
  bool is_open() const;
  // Whether any process ever had a block open, and so may have changed the image.
  bool was_opened() const { return was_opened_; }

 private:
  struct Block {
    SessionKey token{};
    std::set<SessionId> openers;
    bool is_freed = false;
  };

  std::map<Bytes, Block> blocks_;
  bool was_opened_ = false;
};

}  // namespace torpor::server

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "memory/extent_set.h"
#include "memory/range_allocator.h"
#include "server/controller/model/executor_key.h"
#include "server/controller/model/image_state.h"
#include "server/controller/model/shared_blocks.h"
#include "server/controller/model/step_queue.h"
#include "server/controller/model/swap_learning.h"
#include "server/links/links.h"
#include "server/repository/repository.h"
#include "server/repository/spilled_image.h"

namespace torpor::server {

class SessionJournal;

// Addresses of host memory that one process can have for cudaHostAlloc.
inline constexpr Bytes kHostArenaBytes = 64 * kGiB;

// Chunks of an image that hold no allocation any more, though the file still has their pages, which
// executors may have pinned. See FreedPages. A plain record.
struct FreedChunks {
  memory::ExtentSet chunks;  // offsets
  TimePoint since{};         // when the first came, or some last went
  bool is_going = false;     // a step that gives some back waits or runs
};

// What HostBudget counts of a session. A plain record.
struct HostCharge {
  Bytes bytes = 0;
  bool is_refused = false;  // since it was last allowed more
};

// Where the host's image is. See SpillStore. A plain record.
struct ImageSpill {
  enum class State {
    kInMemory,
    kLeaving,  // is being written to the spill file
    kOnDisk,   // takes no host memory
    kComing,   // is being read
  };

  State state = State::kInMemory;
  bool is_wanted = false;  // since the spill began
  SpilledImage image;      // what the spill file has, unless kInMemory

  bool is_on_disk() const { return state == State::kOnDisk; }
};

// A session's blocks in the tenant's file. See BlockSharing. A plain record.
struct TenantBlocks {
  std::string tenant;               // of the session's function when it was opened
  std::vector<std::size_t> places;  // homes of blocks, as far as known; one may be there twice
  // The checkpoint whose blocks were looked at last, and the present one, seen first at `since`.
  std::optional<std::uint64_t> looked_at;
  std::uint64_t seen = 0;
  TimePoint since{};

  Bytes bytes() const { return places.size() * wire::kImageBlockBytes; }
};

// A session's addresses, its allocations, and the files behind both. A plain record.
struct SessionAllocations {
  SessionKey key{};       // shown by the client and by executors for the files' descriptors
  SessionKey peer_key{};  // shown by executors to each other for the image on a GPU
  std::shared_ptr<SessionFiles> files;  // null until the session is opened
  // Where the node's addresses begin, from which offsets of all sessions count.
  std::uint64_t device_base = 0;
  std::uint64_t host_base = 0;
  std::vector<memory::Block> device_segments;  // owned by the session
  std::vector<memory::Block> host_segments;
  Bytes address_limit = 0;  // of device_segments together
  std::optional<memory::RangeAllocator> device;
  std::optional<memory::RangeAllocator> host;  // of the primary session only
  std::map<Bytes, Bytes> host_blocks;          // mapped by executors: offset -> bytes
  StepQueue mallocs;                           // runs device allocations in order
  int unfinished_frees = 0;                    // of device memory
  FreedChunks freed;
  HostCharge charge;
  ImageSpill spill;
  TenantBlocks tenant_blocks;
  // The new chunks of an allocation for which the scheduler has found no room yet: only their
  // addresses are taken. Of no bytes if no allocation waits.
  memory::Block growth;
};

// A session's part in leases. A plain record.
struct SessionLease {
  LeaseId id;                  // unset while the session takes part in no lease
  RequestId implicit_request;  // waits in the scheduler's queue for an implicit lease
  bool is_wanted = false;      // the client waits for a lease without a request in the queue
};

// One device of one client process. A plain record, on the controller's thread. The sessions of a
// process are its primary session, for device 0, and a secondary session for each additional device
// in use.
struct ClientSession {
  enum class State {
    kNew,      // has not said Hello
    kRefused,  // has shown a wrong token, and waits to be told
    kOpening,  // waits for executors to become ready, or to learn of the session
    kOffered,  // HelloReply is sent
    kAway,     // of an earlier torpord, and waits for its client's Resume, or for an executor
    kOpen,
    kClosing,  // the stream is closed or closing; executors let go of the session
  };

  SessionId id;
  State state = State::kNew;
  TimePoint away_since{};  // in kAway: since when a torpord knows
  std::shared_ptr<SessionLink> link;
  InstanceId instance;
  DomainId domain;    // of executors that serve it
  SessionId primary;  // of its process
  int device_index = 0;
  bool is_inquiry = false;  // wants an answer, and no session
  std::uint64_t process_id = 0;
  std::string program;

  SessionAllocations memory;
  ImageState image;
  SwapLearning learning;
  SessionLease lease;
  SharedBlocks shared;  // allocations of its own
  // Allocations of other processes that are open in the session's process, by session and offset.
  // Kept by the primary session.
  std::set<std::pair<SessionId, Bytes>> opened_blocks;

  // Whether executors that attach must learn of the session. False again once the session closes.
  bool is_announced = false;
  bool is_lost = false;    // has a sticky error: never takes a lease again
  TimePoint lost_since{};  // of is_lost
  // Has held a GPU for too long: executors do not wait for the end of its work.
  bool is_overdue = false;
  bool is_kept = false;  // outlives its process because other processes have its memory open

  // Records the session for the next torpord; null: the session ends with this torpord.
  SessionJournal* journal = nullptr;

  // Runs all operations that touch the image or the executors' picture of the session, in order.
  StepQueue steps;

  // Returns which executor of the GPU serves the session.
  ExecutorKey On(GpuIndex gpu) const { return {gpu, domain}; }
  // The primary session owns the host arena of its process.
  bool has_arena() const { return primary == id; }
  // Whether the session can take a lease.
  bool is_able() const { return state == State::kOpen && !is_lost; }
};

using SessionPtr = std::shared_ptr<ClientSession>;

}  // namespace torpor::server

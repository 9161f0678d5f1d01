#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "memory/range_allocator.h"
#include "memory/swap_history.h"
#include "server/controller/step_queue.h"
#include "server/links/links.h"
#include "server/repository/repository.h"

namespace torpor::server {

// What cudaHostAlloc can give to a session; sparse, so that it costs only addresses.
inline constexpr Bytes kHostArenaBytes = 64 * kGiB;

// An allocation that other processes of the function may open.
struct SharedBlock {
  SessionKey token{};
  std::set<SessionId> openers;  // those that have it open: their first sessions
  bool is_freed = false;        // by its owner; it goes when nobody has it open any more
};

// One device of one client process, as the controller knows it. On the controller's thread.
struct Session {
  enum class State {
    kNew,      // has not said Hello
    kOpening,  // waits for executors, or they are told of it
    kOffered,  // HelloReply is sent
    kOpen,
    kClosing,  // its stream has ended or is to end; the executors are told
  };

  SessionId id;
  State state = State::kNew;
  std::shared_ptr<SessionLink> link;
  InstanceId instance;
  // The process's sessions are a family: the first, for its device 0, and those for the further
  // devices that it has used.
  SessionId first;
  int device_index = 0;
  bool is_inquiry = false;  // wants an answer, and no session
  std::uint64_t process_id = 0;
  std::string program;

  SessionKey key{};
  std::shared_ptr<SessionFiles> memory;
  std::uint64_t device_base = 0;
  Bytes device_bytes = 0;
  std::uint64_t host_base = 0;
  std::optional<memory::RangeAllocator> device;
  std::optional<memory::RangeAllocator> host;
  std::map<Bytes, Bytes> host_blocks;  // live ones, as the executors have them: offset -> bytes

  // The arena of a family is the first session's.
  bool has_arena() const { return first == id; }

  // Whether it can take a lease.
  bool is_able() const { return state == State::kOpen && !is_lost; }

  // Executors that attach from now on are told of the session, until it is told to close.
  bool is_announced = false;
  // The executor on which the image is.
  std::optional<GpuIndex> resident;
  // Where a copy that equals the host's image is kept for the swap-in to another GPU.
  std::optional<GpuIndex> source;
  // Whether that copy is all there is of it: it does not grow there, and nobody reaches it there.
  bool is_source_only() const { return source && source == resident; }
  std::optional<GpuIndex> arrives_at;  // of the last swap-in
  bool is_leaving = false;             // it is dropped where it is resident
  // Its swap-in is still copying; what waits for the end of that.
  bool is_arriving = false;
  std::vector<std::function<void()>> on_arrival;
  memory::SwapHistory swaps;
  bool is_plan_joined = false;  // of the last swap-in: IsSentJoined
  bool is_told_all = false;     // at the end of the present lease, of what it has used
  // The executors that have had it since they were started, and so keep pages of its file.
  std::set<GpuIndex> image_holders;
  // The executors, of the family's other devices, that reach the image where it is resident.
  std::set<GpuIndex> peer_holders;
  SessionKey peer_key{};
  LeaseId lease;               // none: the session has no part in one
  RequestId implicit_request;  // waits for an implicit lease
  bool wants_lease = false;    // asked for one and waits, but not in the scheduler's queue
  // The lease whose work must reach the host's image and has not yet: an implicit one, and the
  // first of all. If the executor dies now, what the program set up for later is lost.
  LeaseId unsaved_lease;
  bool was_saved = false;    // its image has been written back
  bool has_changes = false;  // may differ on the GPU from its image: it has had a lease since
  bool is_lost = false;      // has been told of a sticky error: takes no lease ever again
  bool was_opened = false;   // others have had its memory open, and may have changed its image
  bool is_kept = false;      // its process has gone, but others have its memory open

  // Of its allocations, by offset.
  std::map<Bytes, SharedBlock> shared_blocks;
  // Of other processes' allocations those that this one has open, by session and offset; the
  // process's first session has them.
  std::set<std::pair<SessionId, Bytes>> opened_blocks;

  StepQueue mallocs;
  Bytes unanswered_growth = 0;  // chunks that the allocation in hand asked the scheduler for

  // Everything that touches the image or the executors' picture of the session, in order.
  StepQueue steps;
};

}  // namespace torpor::server

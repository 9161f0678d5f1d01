#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "memory/equal_blocks.h"
#include "memory/tenant_places.h"
#include "server/controller/memory/session_segments.h"
#include "server/controller/model/client_session.h"
#include "server/controller/model/executor_table.h"
#include "server/controller/model/session_table.h"
#include "server/controller/model/sharing_figures.h"
#include "server/controller/model/task_loop.h"
#include "server/repository/session_addresses.h"
#include "server/repository/tenant_blocks.h"
#include "server/repository/tenant_files.h"

namespace torpor::server {

// Stores equal blocks of a tenant's images once: looks at images at rest, and moves runs of equal
// blocks into the tenant's file. Equal hashes only propose; bytes are
// compared before a block moves (docs/decisions/0051). Executors take a block out again before they
// change it, which the next look at the image finds. One image at a time. On the controller's
// thread.
class BlockSharing {
 public:
  struct Options {
    // An image rests that has been the same for so long, without a lease; 0: no more blocks are
    // shared than an earlier torpord has.
    Duration after{};
  };

  // All references must outlive the object.
  BlockSharing(const Options& options, SessionKeeper* keeper, SessionSegments& segments,
               const SessionTable& sessions, ExecutorTable& executors, TaskLoop& loop);

  // A new session of TenantBlocks::tenant, whose files have just been created.
  void Add(const ClientSession& session);
  // The session of an earlier torpord, with these files, may have blocks in the file of `tenant`;
  // empty: has none.
  void Adopt(const ClientSession& session, SessionFiles& files, const std::string& tenant);
  // The session has ended: nobody uses its image any more.
  void Remove(ClientSession& session);

  // Looks at all images that rest, one after the other, and gives memory back. Call once a second.
  void Look();

  const SharingFigures& figures() const { return figures_; }
  // The session's part of what is stored, for its bill: of a block with several users a part each.
  Bytes ShareOf(const ClientSession& session) const;

 private:
  struct Tenant {
    Tenant();

    memory::TenantPlaces places;
    memory::EqualBlocks equal;
    std::set<SessionId> sessions;
    // Sessions of an earlier torpord whose homes are not known yet: until then no place is free.
    std::set<SessionId> unknown;
  };
  using Then = std::function<void()>;
  using Blocks = std::shared_ptr<const ImageBlockList>;

  // Null if the session has no tenant's file, or has ended.
  Tenant* TenantOf(const ClientSession& session);
  bool is_on() const { return options_.after > Duration::zero(); }
  // Looks at the next session, and then at further ones.
  void LookAtNext();
  // The next session to look at, of those without a step under way; null if there is none.
  SessionPtr Next();
  // Since when the image has been as of its present checkpoint.
  void NoteCheckpoint(ClientSession& session) const;
  bool IsDue(const ClientSession& session) const;
  // Whether the session's blocks may move now: nobody uses the image.
  bool MayMove(const ClientSession& session) const;

  // Steps of the session; each runs `then` at its end.
  void List(const SessionPtr& session, const std::function<void(const Blocks&)>& then);
  void LookAt(const SessionPtr& session, const Then& then);
  void OnListed(const SessionPtr& session, const Blocks& blocks, const Then& then);
  // There may be more to find.
  static void LookAgain(ClientSession& session, const Then& then);
  // Copies the twin's blocks that equal `blocks`, of another session, to new places.
  void CopyTwin(const memory::EqualBlocks::Twin& twin, const Blocks& blocks, const Then& then);
  void Copy(const SessionPtr& session, const memory::EqualRun& run, const Blocks& blocks,
            const Then& then);
  void OnCopied(const SessionPtr& session, const memory::EqualRun& run,
                const ImageBlockList& blocks, const absl::Status& status, const Then& then);
  // Moves blocks to places with the same bytes, and gives their former memory back.
  void Move(const SessionPtr& session, const std::vector<memory::EqualRun>& runs, const Then& then);
  void OnMoved(const SessionPtr& session, const MovedBlocks& moved, const Then& then);
  // Lets all executors unpin the blocks' former places, and then gives the pages back.
  void GiveBack(const SessionPtr& session, const MovedBlocks& moved, const Then& then);

  // What the session's image has now.
  void SetPlaces(ClientSession& session, Tenant& tenant, const ImageBlockList& blocks);
  // Whether the place can be the tenant's: takes its segment, if the tenant does not have it yet.
  bool KnowPlace(Tenant& tenant, std::size_t place);
  // Returns free places for as many of the run's blocks as there is room for: the run, with the
  // places as `other`.
  std::optional<memory::EqualRun> TakePlaces(Tenant& tenant, const memory::EqualRun& run);
  static void LeavePlaces(Tenant& tenant, const memory::EqualRun& run);
  static void Leave(Tenant& tenant, std::size_t place);
  void GiveBackSlots(const std::string& name, Tenant& tenant);
  void Count();

  const Options options_;
  TenantFiles files_;
  SessionSegments& segments_;
  const SessionTable& sessions_;
  ExecutorTable& executors_;
  TaskLoop& loop_;
  SessionAddresses place_segments_;  // free ones; bytes in tenants' files
  std::map<std::string, Tenant> tenants_;
  SharingFigures figures_;
  bool is_looking_ = false;
};

}  // namespace torpor::server

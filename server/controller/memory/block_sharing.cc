#include "server/controller/memory/block_sharing.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "server/controller/model/extents.h"
#include "server/controller/model/join.h"
#include "server/settings/node_addresses.h"

namespace torpor::server {
namespace {

using memory::EqualBlocks;
using memory::EqualRun;
using memory::PlaceRun;
using ReleaseImage = v1::DaemonMessage::ReleaseImage;

constexpr Bytes kBlockBytes = wire::kImageBlockBytes;

// A request that wants the image waits for the copy of so much.
constexpr std::size_t kMostBlocks = 16 * kMiB / kBlockBytes;

// PinnedMemory::kSlotBytes: no pinned piece spans two slots.
constexpr std::size_t kSlotPlaces = 64 * kMiB / kBlockBytes;

// Shared blocks do not spill: one part in so many of the budget may be theirs.
constexpr Bytes kMostOfBudget = 2;

std::vector<memory::Extent> ExtentsOf(const std::vector<memory::Block>& blocks) {
  std::vector<memory::Extent> extents;
  extents.reserve(blocks.size());
  for (const memory::Block& block : blocks) extents.push_back({block.offset, block.end()});
  return extents;
}

// Returns the first runs, cut to kMostBlocks together.
std::vector<EqualRun> FirstOf(const std::vector<EqualRun>& runs) {
  std::vector<EqualRun> first;
  std::size_t left = kMostBlocks;
  for (EqualRun run : runs) {
    run.count = std::min(run.count, left);
    left -= run.count;
    if (run.count > 0) first.push_back(run);
  }
  return first;
}

v1::DaemonMessage Release(SessionId session, memory::Extent extent, ReleaseImage::Places places) {
  v1::DaemonMessage message;
  message.mutable_release_image()->set_session_id(session.value);
  SetExtent(*message.mutable_release_image()->mutable_extent(), {extent.begin, extent.bytes()});
  message.mutable_release_image()->set_places(places);
  return message;
}

memory::Extent BytesOf(PlaceRun places) {
  return {places.first * kBlockBytes, places.end() * kBlockBytes};
}

std::uint64_t ContentOf(const ImageBlockList& blocks, std::size_t block) {
  const auto found =
      std::ranges::lower_bound(blocks.uploaded, block, {}, &memory::BlockContent::block);
  const bool is_known = found != blocks.uploaded.end() && found->block == block;
  return is_known ? found->content : memory::BlockStates::kNoContent;
}

}  // namespace

BlockSharing::BlockSharing(const Options& options, SessionKeeper* keeper, SessionSegments& segments,
                           const SessionTable& sessions, ExecutorTable& executors, TaskLoop& loop)
    : options_(options),
      files_(keeper, segments.addresses().device_bytes),
      segments_(segments),
      sessions_(sessions),
      executors_(executors),
      loop_(loop),
      place_segments_(segments.addresses().device_bytes, kTenantSegmentBytes) {}

// --- Sessions ------------------------------------------------------------------------------------

BlockSharing::Tenant::Tenant() : places(kSlotPlaces) {}

void BlockSharing::Add(const ClientSession& session) {
  const std::string& tenant = session.memory.tenant_blocks.tenant;
  const auto file = files_.Of(tenant);
  if (!file) return;
  session.memory.files->SetTenantFile(file);
  tenants_[tenant].sessions.insert(session.id);
}

void BlockSharing::Adopt(const ClientSession& session, SessionFiles& files,
                         const std::string& tenant) {
  const auto file = tenant.empty() ? nullptr : files_.OfEarlier(tenant);
  if (!file) return;
  files.SetTenantFile(file);
  Tenant& known = tenants_[tenant];
  known.sessions.insert(session.id);
  known.unknown.insert(session.id);
}

void BlockSharing::Remove(ClientSession& session) {
  Tenant* const tenant = TenantOf(session);
  if (!tenant) return;
  SetPlaces(session, *tenant, {});
  tenant->equal.Remove(session.id);
  tenant->unknown.erase(session.id);
  tenant->sessions.erase(session.id);
  if (!tenant->sessions.empty()) return;
  for (const PlaceRun& segment : tenant->places.segments()) {
    const memory::Extent bytes = BytesOf(segment);
    place_segments_.Release({bytes.begin, bytes.bytes()});
  }
  const std::string name = session.memory.tenant_blocks.tenant;
  tenants_.erase(name);
  files_.Drop(name);
  Count();
}

BlockSharing::Tenant* BlockSharing::TenantOf(const ClientSession& session) {
  const auto tenant = tenants_.find(session.memory.tenant_blocks.tenant);
  const bool is_there = tenant != tenants_.end() && tenant->second.sessions.contains(session.id);
  return is_there ? &tenant->second : nullptr;
}

// --- Looking -------------------------------------------------------------------------------------

void BlockSharing::Look() {
  for (auto& [name, tenant] : tenants_) GiveBackSlots(name, tenant);
  if (!is_looking_) LookAtNext();
}

void BlockSharing::LookAtNext() {
  const SessionPtr session = Next();
  is_looking_ = session != nullptr;
  if (!is_looking_) return;
  session->steps.Add([this, session](const StepQueue::Finish& finish) {
    LookAt(session, [this, finish] {
      finish();
      loop_.Post([this] { LookAtNext(); });
    });
  });
}

SessionPtr BlockSharing::Next() {
  const auto is_ready = [](const SessionPtr& session) {
    return session && session->memory.files && session->steps.idle();
  };
  for (const auto& [name, tenant] : tenants_) {
    for (const SessionId id : tenant.unknown) {
      if (SessionPtr session = sessions_.Find(id); is_ready(session)) return session;
    }
  }
  for (const auto& [name, tenant] : tenants_) {
    for (const SessionId id : tenant.sessions) {
      SessionPtr session = sessions_.Find(id);
      if (!is_ready(session)) continue;
      NoteCheckpoint(*session);
      if (IsDue(*session)) return session;
    }
  }
  return nullptr;
}

void BlockSharing::NoteCheckpoint(ClientSession& session) const {
  TenantBlocks& blocks = session.memory.tenant_blocks;
  const std::uint64_t checkpoint = session.memory.files->checkpoint().number();
  if (std::exchange(blocks.seen, checkpoint) != checkpoint) blocks.since = loop_.Now();
}

bool BlockSharing::IsDue(const ClientSession& session) const {
  const TenantBlocks& blocks = session.memory.tenant_blocks;
  const bool is_new = blocks.seen > 0 && blocks.looked_at != blocks.seen;
  const bool may_matter = is_on() || !blocks.places.empty();
  return may_matter && is_new && MayMove(session) && loop_.Now() - blocks.since >= options_.after;
}

bool BlockSharing::MayMove(const ClientSession& session) const {
  return session.is_able() && session.is_announced && !session.lease.id &&
         session.memory.spill.state == ImageSpill::State::kInMemory &&
         !session.shared.was_opened() && sessions_.PeersOf(session).empty();
}

void BlockSharing::List(const SessionPtr& session, const std::function<void(const Blocks&)>& then) {
  const auto blocks = std::make_shared<ImageBlockList>();
  const auto status = std::make_shared<absl::Status>();
  loop_.InBackground(
      [blocks, status, files = session->memory.files,
       chunks = ExtentsOf(session->memory.device->OccupiedBlocks())] {
        auto listed = ListBlocks(*files, chunks);
        *status = listed.status();
        if (listed.ok()) *blocks = *std::move(listed);
      },
      [session, blocks, status, then] {
        if (!status->ok()) spdlog::error("session {}: {}", session->id.value, status->ToString());
        then(status->ok() ? blocks : nullptr);
      });
}

void BlockSharing::LookAt(const SessionPtr& session, const Then& then) {
  List(session, [this, session, then](const Blocks& blocks) { OnListed(session, blocks, then); });
}

void BlockSharing::OnListed(const SessionPtr& session, const Blocks& blocks, const Then& then) {
  Tenant* const tenant = TenantOf(*session);
  if (!tenant) return then();
  session->memory.tenant_blocks.looked_at = session->memory.tenant_blocks.seen;
  if (!blocks) return then();
  SetPlaces(*session, *tenant, *blocks);
  tenant->unknown.erase(session->id);
  if (!is_on()) return then();
  if (!MayMove(*session)) return LookAgain(*session, then);
  const std::vector<EqualRun> runs = FirstOf(tenant->equal.FindPlaces(blocks->uploaded));
  if (!runs.empty()) {
    return Move(session, runs, [this, session, then] { LookAgain(*session, then); });
  }
  if (const auto twin = tenant->equal.FindTwin(session->id, blocks->uploaded)) {
    return CopyTwin(*twin, blocks, [this, session, then] { LookAgain(*session, then); });
  }
  tenant->equal.SetBlocks(session->id, blocks->uploaded);
  then();
}

void BlockSharing::LookAgain(ClientSession& session, const Then& then) {
  session.memory.tenant_blocks.looked_at.reset();
  then();
}

// --- Copying and moving --------------------------------------------------------------------------

void BlockSharing::CopyTwin(const EqualBlocks::Twin& twin, const Blocks& blocks, const Then& then) {
  const SessionPtr other = sessions_.Find(twin.session);
  Tenant* const tenant = other ? TenantOf(*other) : nullptr;
  if (!tenant) return then();
  if (!MayMove(*other) || !other->steps.idle()) {
    // Once at rest, the twin finds the asking session in turn.
    tenant->equal.Remove(twin.session);
    return LookAgain(*other, then);
  }
  other->steps.Add([=, this](const StepQueue::Finish& finish) {
    const Then done = [finish, then] {
      finish();
      then();
    };
    List(other, [=, this](const Blocks& others) {
      Tenant* const known = TenantOf(*other);
      if (!known || !others) return done();
      EqualRun run = RunAround(others->uploaded, twin.other, blocks->uploaded, twin.block);
      if (run.count < memory::kLeastEqualBlocks) {
        known->equal.Forget(twin);
        return done();
      }
      run.count = std::min(run.count, kMostBlocks);
      Copy(other, run, others, done);
    });
  });
}

void BlockSharing::Copy(const SessionPtr& session, const EqualRun& run, const Blocks& blocks,
                        const Then& then) {
  Tenant& tenant = *TenantOf(*session);
  const std::optional<EqualRun> copied = TakePlaces(tenant, run);
  // Until an image comes or changes, there is no room.
  if (!copied) {
    tenant.equal.Remove(session->id);
    return then();
  }
  const auto status = std::make_shared<absl::Status>();
  loop_.InBackground([status, files = session->memory.files,
                      run = *copied] { *status = CopyToTenantFile(*files, run); },
                     [=, this, run = *copied] { OnCopied(session, run, *blocks, *status, then); });
}

void BlockSharing::OnCopied(const SessionPtr& session, const EqualRun& run,
                            const ImageBlockList& blocks, const absl::Status& status,
                            const Then& then) {
  Tenant* const tenant = TenantOf(*session);
  if (!tenant) return then();
  tenant->equal.Remove(session->id);
  if (!status.ok()) {
    spdlog::error("equal blocks cannot be stored once: {}", status.ToString());
    LeavePlaces(*tenant, run);
    return then();
  }
  for (std::size_t i = 0; i < run.count; ++i) {
    tenant->equal.SetPlace(run.other + i, ContentOf(blocks, run.block + i));
  }
  Move(session, {run}, [this, session, run, then] {
    if (Tenant* const known = TenantOf(*session)) LeavePlaces(*known, run);
    LookAgain(*session, then);  // the session's other blocks are to be known again
  });
}

void BlockSharing::Move(const SessionPtr& session, const std::vector<EqualRun>& runs,
                        const Then& then) {
  const auto moved = std::make_shared<absl::StatusOr<MovedBlocks>>();
  loop_.InBackground(
      [moved, files = session->memory.files, runs] { *moved = MoveToTenantFile(*files, runs); },
      [=, this] {
        Tenant* const tenant = TenantOf(*session);
        if (!tenant) return then();
        if (!moved->ok()) spdlog::error("{}", moved->status().ToString());
        if (moved->ok() && !(*moved)->runs.empty()) return OnMoved(session, **moved, then);
        // Equal hashes, and different bytes: not to be proposed again.
        for (const EqualRun& run : runs) {
          for (std::size_t i = 0; i < run.count; ++i) {
            tenant->equal.RemovePlace(run.other + i);
          }
        }
        then();
      });
}

void BlockSharing::OnMoved(const SessionPtr& session, const MovedBlocks& moved, const Then& then) {
  Tenant& tenant = *TenantOf(*session);
  std::vector<std::size_t>& places = session->memory.tenant_blocks.places;
  for (const EqualRun& run : moved.runs) {
    for (std::size_t i = 0; i < run.count; ++i) {
      tenant.places.Use(run.other + i);
      places.push_back(run.other + i);
    }
  }
  segments_.Settle(*session);
  Count();
  GiveBack(session, moved, then);
}

void BlockSharing::GiveBack(const SessionPtr& session, const MovedBlocks& moved, const Then& then) {
  Join join([this, session, moved, then](const absl::Status& status) {
    if (!status.ok()) {
      // Pages that an executor keeps must stay the file's, or later copies would miss the file.
      spdlog::warn("host memory of equal blocks stays in use: {}", status.ToString());
      return then();
    }
    loop_.InBackground(
        [files = session->memory.files, moved] {
          const absl::Status given = GiveBackLeft(*files, moved);
          if (!given.ok()) spdlog::error("{}", given.ToString());
        },
        then);
  });
  const auto unpin = [&](const memory::ExtentSet& extents, ReleaseImage::Places places) {
    for (const memory::Extent& extent : extents.extents()) {
      join.Add();
      executors_.RunOnAll(session->domain, Release(session->id, extent, places),
                          [join](const absl::Status& status) { join.Done(status); });
    }
  };
  unpin(moved.own, ReleaseImage::OWN);
  unpin(moved.annex, ReleaseImage::ANNEX);
  join.Done();
}

// --- Places --------------------------------------------------------------------------------------

void BlockSharing::SetPlaces(ClientSession& session, Tenant& tenant, const ImageBlockList& blocks) {
  std::vector<std::size_t>& known = session.memory.tenant_blocks.places;
  std::vector<std::size_t> places;
  places.reserve(blocks.at_tenant.size());
  for (const TenantPlace& each : blocks.at_tenant) {
    if (!tenant.unknown.contains(session.id) || KnowPlace(tenant, each.place)) {
      places.push_back(each.place);
    }
  }
  // As a rule nothing has changed, of perhaps 100,000 places.
  if (places == known) return;
  for (const std::size_t place : places) tenant.places.Use(place);
  for (const TenantPlace& each : blocks.at_tenant) {
    const bool is_known = each.content != memory::BlockStates::kNoContent;
    if (is_known && tenant.places.Has(each.place)) tenant.equal.SetPlace(each.place, each.content);
  }
  for (const std::size_t place : std::exchange(known, std::move(places))) Leave(tenant, place);
  segments_.Settle(session);
  Count();
}

bool BlockSharing::KnowPlace(Tenant& tenant, std::size_t place) {
  if (tenant.places.Has(place)) return true;
  constexpr std::size_t kSegmentPlaces = kTenantSegmentBytes / kBlockBytes;
  const PlaceRun segment{RoundDown(place, kSegmentPlaces), kSegmentPlaces};
  const memory::Extent bytes = BytesOf(segment);
  if (!place_segments_.TakeAt({bytes.begin, bytes.bytes()})) return false;
  tenant.places.AddSegment(segment);
  return true;
}

std::optional<EqualRun> BlockSharing::TakePlaces(Tenant& tenant, const EqualRun& run) {
  const bool knows_all =
      std::ranges::all_of(tenants_, [](const auto& each) { return each.second.unknown.empty(); });
  const HostBudget::Use& host = segments_.host_memory();
  const Bytes most = host.budget / kMostOfBudget;
  if (!knows_all || host.tenant_files + run.count * kBlockBytes > most) return std::nullopt;
  std::optional<PlaceRun> places = tenant.places.Take(run.count);
  if (places && places->count < memory::kLeastEqualBlocks) {
    LeavePlaces(tenant, {run.block, places->first, places->count});
    places.reset();
  }
  if (!places) {
    const auto segment = place_segments_.Take(kTenantSegmentBytes);
    if (!segment) return std::nullopt;
    tenant.places.AddSegment({segment->offset / kBlockBytes, segment->bytes / kBlockBytes});
    places = tenant.places.Take(run.count);
  }
  Count();
  return EqualRun{run.block, places->first, places->count};
}

void BlockSharing::LeavePlaces(Tenant& tenant, const EqualRun& run) {
  for (std::size_t i = 0; i < run.count; ++i) Leave(tenant, run.other + i);
}

void BlockSharing::Leave(Tenant& tenant, std::size_t place) {
  tenant.places.Leave(place);
  if (!tenant.places.is_used(place)) tenant.equal.RemovePlace(place);
}

void BlockSharing::GiveBackSlots(const std::string& name, Tenant& tenant) {
  const auto teller = std::ranges::find_if(tenant.sessions, [this](SessionId id) {
    const SessionPtr session = sessions_.Find(id);
    return session && session->is_announced && session->memory.files;
  });
  if (teller == tenant.sessions.end() || !tenant.unknown.empty()) return;
  for (const PlaceRun& slot : tenant.places.TakeUnusedSlots()) {
    const memory::Extent bytes = BytesOf(slot);
    const auto file = files_.Of(name);
    const v1::DaemonMessage message = Release(*teller, bytes, ReleaseImage::TENANT_FILE);
    executors_.RunOnAll(
        sessions_.Find(*teller)->domain, message, [=, this](const absl::Status& status) {
          if (!status.ok()) {
            spdlog::warn("host memory of equal blocks stays in use: {}", status.ToString());
            return;
          }
          loop_.InBackground([file, bytes] { file->GiveBack(bytes).IgnoreError(); },
                             [=, this] {
                               const auto known = tenants_.find(name);
                               if (known == tenants_.end() || files_.Of(name) != file) return;
                               known->second.places.Return(slot);
                               Count();
                             });
        });
  }
}

Bytes BlockSharing::ShareOf(const ClientSession& session) const {
  if (figures_.used == 0) return 0;
  const double part = static_cast<double>(session.memory.tenant_blocks.bytes()) /
                      static_cast<double>(figures_.used);
  return static_cast<Bytes>(part * static_cast<double>(figures_.stored));
}

void BlockSharing::Count() {
  figures_ = {};
  for (const auto& [name, tenant] : tenants_) {
    figures_.stored += tenant.places.with_pages() * kBlockBytes;
    for (const SessionId id : tenant.sessions) {
      if (const SessionPtr session = sessions_.Find(id)) {
        figures_.used += session->memory.tenant_blocks.bytes();
      }
    }
  }
  segments_.SetTenantFiles(figures_.stored);
}

}  // namespace torpor::server

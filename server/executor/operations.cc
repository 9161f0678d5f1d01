#include "server/executor/operations.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/executor/session_memory/peer_client.h"
#include "server/executor/session_memory/peer_image_copy.h"

namespace torpor::executor {
namespace {

using v1::DaemonMessage;

// Converts an Extent or an Allocation; InvalidArgument if the end exceeds 64 bits.
template <typename Message>
absl::StatusOr<memory::Extent> ToExtent(const Message& extent) {
  Bytes end = 0;
  if (__builtin_add_overflow(extent.offset(), extent.bytes(), &end)) {
    return absl::InvalidArgumentError("an extent ends beyond 64 bits");
  }
  return memory::Extent{extent.offset(), end};
}

template <typename Extents>
absl::StatusOr<memory::ExtentSet> ToExtentSet(const Extents& extents) {
  memory::ExtentSet set;
  for (const v1::Extent& extent : extents) {
    TORPOR_ASSIGN_OR_RETURN(const memory::Extent converted, ToExtent(extent));
    set.Add(converted);
  }
  return set;
}

absl::StatusOr<std::vector<memory::SwapAllocation>> ToAllocations(
    const google::protobuf::RepeatedPtrField<v1::Allocation>& messages) {
  std::vector<memory::SwapAllocation> allocations;
  allocations.reserve(static_cast<std::size_t>(messages.size()));
  for (const v1::Allocation& message : messages) {
    TORPOR_ASSIGN_OR_RETURN(const memory::Extent extent, ToExtent(message));
    allocations.push_back({extent, message.holds_addresses()});
  }
  return allocations;
}

// Checks and converts torpord's description of a session.
absl::StatusOr<SessionIdentity> ToIdentity(const v1::SessionDescription& description) {
  SessionIdentity identity;
  if (description.session_key().size() != identity.key.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("a session key has 16 bytes, not ", description.session_key().size()));
  }
  identity.id = {description.session_id()};
  identity.first = description.primary_session_id() == 0
                       ? identity.id
                       : SessionId{description.primary_session_id()};
  std::copy(description.session_key().begin(), description.session_key().end(),
            identity.key.begin());
  // Anybody could present an empty key.
  if (description.peer_key().size() != identity.peer_key.size()) {
    return absl::InvalidArgumentError("a session needs a peer key of 16 bytes");
  }
  std::copy(description.peer_key().begin(), description.peer_key().end(),
            identity.peer_key.begin());
  identity.function = description.function();
  identity.tenant = description.tenant();
  identity.device_base = description.device_base();
  identity.device_bytes = description.device_bytes();
  identity.host_base = description.host_base();
  identity.host_bytes = description.host_bytes();
  identity.window_bytes = description.window_bytes();
  identity.is_stateless = description.is_stateless();
  return identity;
}

// Maps the session's files and registers the session.
absl::Status OpenSession(const OperationEnvironment& environment,
                         const DaemonMessage::OpenSession& operation) {
  TORPOR_ASSIGN_OR_RETURN(SessionIdentity identity, ToIdentity(operation.session()));
  TORPOR_RETURN_IF_ERROR(environment.domain.Enter(operation.session().domain()));
  TORPOR_ASSIGN_OR_RETURN(MappedSessionFiles files,
                          environment.windows.Open(environment.descriptor_socket, identity));
  TORPOR_ASSIGN_OR_RETURN(files.image.tenant,
                          environment.tenants.Open(environment.descriptor_socket, identity));
  TORPOR_ASSIGN_OR_RETURN(
      std::unique_ptr<SessionMemory> memory,
      SessionMemory::Open(environment.session.device, environment.session.gpu_memory,
                          environment.session.hasher, identity, std::move(files),
                          environment.directory, environment.swap));
  return environment.registry.Add(
      std::make_unique<Session>(environment.session, std::move(identity), std::move(memory)));
}

// How long the operation waits for the session's work to end.
Duration PatienceOf(const OperationEnvironment& environment, const DaemonMessage& operation) {
  // 0 in all other operations.
  const std::uint64_t asked =
      operation.close_session().patience_ms() + operation.end_lease().patience_ms();
  return asked == 0 ? environment.lease_end_patience : std::chrono::milliseconds(asked);
}

absl::Status CloseSession(const OperationEnvironment& environment, SessionId id,
                          TimePoint deadline) {
  TORPOR_ASSIGN_OR_RETURN(Session * session, environment.registry.Find(id));
  // A session whose work does not end stays registered: kernels still use the session's memory.
  TORPOR_RETURN_IF_ERROR(session->Close(deadline));
  return environment.registry.Remove(id).status();
}

absl::StatusOr<HostPlaces> ToHostPlaces(DaemonMessage::ReleaseImage::Places places) {
  switch (places) {
    case DaemonMessage::ReleaseImage::OWN:
      return HostPlaces::kOwn;
    case DaemonMessage::ReleaseImage::ANNEX:
      return HostPlaces::kAnnex;
    case DaemonMessage::ReleaseImage::ALL:
      return HostPlaces::kAll;
    case DaemonMessage::ReleaseImage::TENANT_FILE:
      return HostPlaces::kTenantFile;
    default:
      return absl::InvalidArgumentError("the places to release are of no known kind");
  }
}

absl::Status ReleaseImage(const OperationEnvironment& environment, Session& session,
                          const DaemonMessage::ReleaseImage& what, TimePoint deadline) {
  TORPOR_ASSIGN_OR_RETURN(const memory::Extent extent, ToExtent(what.extent()));
  // The driver may wait for all work of the GPU before it unregisters.
  if (what.only_when_idle() && environment.registry.any_active()) {
    return absl::AbortedError("a session works on the GPU; ask again when it is idle");
  }
  TORPOR_ASSIGN_OR_RETURN(const HostPlaces places, ToHostPlaces(what.places()));
  return session.ReleaseImage(extent, places, deadline);
}

// Bytes that a swap-out may examine; unlimited if the session leaves the GPU.
Bytes MaxBytesOf(const DaemonMessage::SwapOut& operation) {
  const bool is_bounded = operation.max_bytes() > 0 && !operation.drop();
  return is_bounded ? operation.max_bytes() : DeviceImage::kAll;
}

// Swaps in from the host or from the given source. For `on_begun` see Session::SwapIn.
absl::StatusOr<memory::MovedBytes> SwapIn(const OperationEnvironment& environment, Session& session,
                                          const DaemonMessage::SwapIn& what,
                                          const std::function<void()>& on_begun) {
  TORPOR_ASSIGN_OR_RETURN(const std::vector<memory::SwapAllocation> live,
                          ToAllocations(what.live()));
  std::unique_ptr<PeerCopy> source;
  if (!what.source_socket_path().empty()) {
    source = std::make_unique<PeerImageCopy>(environment.peer_pools, what.source_socket_path(),
                                             session.identity());
  }
  TORPOR_ASSIGN_OR_RETURN(
      const ArrivedBytes copied,
      session.SwapIn(live, what.is_whole(), std::move(source), what.refreshes(), on_begun));
  return copied.from_peer;
}

// Runs an operation on an open session; fills in the parts of `result` besides the status.
absl::Status RunOnSession(const OperationEnvironment& environment, Session& session,
                          const DaemonMessage& operation, TimePoint deadline, CUstream stream,
                          const std::function<void()>& on_begun, OperationOutcome& result) {
  switch (operation.kind_case()) {
    case DaemonMessage::kSwapIn: {
      TORPOR_ASSIGN_OR_RETURN(result.from_peer,
                              SwapIn(environment, session, operation.swap_in(), on_begun));
      return absl::OkStatus();
    }
    case DaemonMessage::kReleaseSource:
      return session.ReleaseSource();
    case DaemonMessage::kSwapOut: {
      const SwapOutOptions options{
          .drop = operation.swap_out().drop(),
          .is_shared = operation.swap_out().is_shared(),
          .forgets_changes = operation.swap_out().forgets_changes(),
          .becomes_source = operation.swap_out().becomes_source(),
          .searches_whole_image = operation.swap_out().search_whole_image(),
          .max_bytes = MaxBytesOf(operation.swap_out())};
      TORPOR_ASSIGN_OR_RETURN(const SwappedOut out,
                              session.SwapOut(options, stream, result.findings));
      result.to_host = out.bytes;
      result.has_more = out.has_more;
      return absl::OkStatus();
    }
    case DaemonMessage::kGrow: {
      TORPOR_ASSIGN_OR_RETURN(const memory::Extent extent, ToExtent(operation.grow().extent()));
      return session.Grow(extent, stream, operation.grow().is_replica());
    }
    case DaemonMessage::kShrink: {
      TORPOR_ASSIGN_OR_RETURN(const memory::Extent extent, ToExtent(operation.shrink().extent()));
      TORPOR_ASSIGN_OR_RETURN(const memory::ExtentSet live, ToExtentSet(operation.shrink().live()));
      return session.Shrink(extent, live);
    }
    case DaemonMessage::kReleaseImage:
      return ReleaseImage(environment, session, operation.release_image(), deadline);
    case DaemonMessage::kMapHost: {
      TORPOR_ASSIGN_OR_RETURN(const memory::Extent extent, ToExtent(operation.map_host().extent()));
      return session.MapHost(extent);
    }
    case DaemonMessage::kUnmapHost: {
      TORPOR_ASSIGN_OR_RETURN(const memory::Extent extent,
                              ToExtent(operation.unmap_host().extent()));
      return session.UnmapHost(extent);
    }
    case DaemonMessage::kBeginLease:
      return session.BeginLease({operation.begin_lease().lease_id()},
                                operation.begin_lease().learn());
    case DaemonMessage::kEndLease: {
      absl::Status ended = session.EndLease({operation.end_lease().lease_id()}, deadline,
                                            operation.end_lease().is_last());
      result.findings.touched = session.TakeTouched();
      return ended;
    }
    case DaemonMessage::kMapPeer: {
      TORPOR_ASSIGN_OR_RETURN(const memory::ExtentSet live,
                              ToExtentSet(operation.map_peer().live()));
      PeerClient owner(operation.map_peer().socket_path(), session.identity());
      return session.MapPeer(live, owner);
    }
    default:
      return absl::UnimplementedError(
          absl::StrCat("operation ", operation.kind_case(), " is unknown to this executor"));
  }
}

}  // namespace

SessionId SessionOf(const DaemonMessage& operation) {
  switch (operation.kind_case()) {
    case DaemonMessage::kOpenSession:
      return {operation.open_session().session().session_id()};
    case DaemonMessage::kCloseSession:
      return {operation.close_session().session_id()};
    case DaemonMessage::kSwapIn:
      return {operation.swap_in().session_id()};
    case DaemonMessage::kReleaseSource:
      return {operation.release_source().session_id()};
    case DaemonMessage::kSwapOut:
      return {operation.swap_out().session_id()};
    case DaemonMessage::kGrow:
      return {operation.grow().session_id()};
    case DaemonMessage::kShrink:
      return {operation.shrink().session_id()};
    case DaemonMessage::kReleaseImage:
      return {operation.release_image().session_id()};
    case DaemonMessage::kMapHost:
      return {operation.map_host().session_id()};
    case DaemonMessage::kUnmapHost:
      return {operation.unmap_host().session_id()};
    case DaemonMessage::kBeginLease:
      return {operation.begin_lease().session_id()};
    case DaemonMessage::kEndLease:
      return {operation.end_lease().session_id()};
    case DaemonMessage::kMapPeer:
      return {operation.map_peer().session_id()};
    default:
      return {};
  }
}

OperationOutcome RunOperation(const OperationEnvironment& environment,
                              const DaemonMessage& operation, CUstream stream,
                              const AnswerEarly& answer_early) {
  const SteadyClock clock;
  const TimePoint start = clock.Now();
  const TimePoint deadline = start + PatienceOf(environment, operation);
  OperationOutcome result;
  result.operation_id = operation.operation_id();
  result.session = SessionOf(operation);
  if (operation.has_open_session()) {
    result.status = OpenSession(environment, operation.open_session());
  } else if (operation.has_close_session()) {
    result.status = CloseSession(environment, result.session, deadline);
  } else {
    const absl::StatusOr<Session*> session = environment.registry.Find(result.session);
    const auto on_begun = [&] {
      result.memory = (*session)->device_memory();
      result.duration = clock.Now() - start;
      answer_early(result);
      result.is_answered = true;
    };
    result.status = session.ok() ? RunOnSession(environment, **session, operation, deadline, stream,
                                                on_begun, result)
                                 : session.status();
    if (session.ok()) result.memory = (*session)->device_memory();
  }
  result.duration = clock.Now() - start;
  return result;
}

}  // namespace torpor::executor

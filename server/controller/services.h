#pragma once

#include "server/controller/domain_seats.h"
#include "server/controller/images/image_moves.h"
#include "server/controller/images/image_swaps.h"
#include "server/controller/images/peer_access.h"
#include "server/controller/images/shard_swaps.h"
#include "server/controller/images/spill_store.h"
#include "server/controller/memory/block_sharing.h"
#include "server/controller/memory/device_allocations.h"
#include "server/controller/memory/host_allocations.h"
#include "server/controller/memory/host_room.h"
#include "server/controller/memory/memory_limits.h"
#include "server/controller/memory/session_segments.h"
#include "server/controller/memory/shared_allocations.h"
#include "server/controller/model/executor_table.h"
#include "server/controller/model/instance_table.h"
#include "server/controller/model/isolation_domains.h"
#include "server/controller/model/session_table.h"
#include "server/controller/model/spare_executors.h"

// The controller's parts in groups: plain records that construct their members in order of
// dependence.
namespace torpor::server {

struct NodeTables {
  NodeTables(const std::vector<GpuIndex>& gpus, TaskLoop& loop, ExecutorProcesses& processes,
             Isolation isolation = Isolation::kTenant)
      : domains(isolation),
        executors(gpus, loop, processes),
        spares(processes),
        sessions(instances) {}

  IsolationDomains domains;
  InstanceTable instances;
  ExecutorTable executors;
  SpareExecutors spares;
  SessionTable sessions;
};

struct HostServices {
  HostServices(NodeTables& tables, const scheduler::Scheduler& scheduler, EventSink& events,
               TaskLoop& loop, const SessionSegments::Options& options,
               const SpillStore::Options& disk, const BlockSharing::Options& sharing_options,
               SessionKeeper* keeper, HostRoom::OnLost on_lost)
      : segments(options),
        spills(disk, tables.executors, loop),
        sharing(sharing_options, keeper, segments, tables.sessions, tables.executors, loop),
        room(spills, segments, tables.instances, tables.sessions, scheduler, events, loop,
             std::move(on_lost)) {}

  SessionSegments segments;
  SpillStore spills;
  BlockSharing sharing;
  HostRoom room;
};

struct ImageServices {
  ImageServices(NodeTables& tables, const scheduler::Scheduler& scheduler, EventSink& events,
                HostRoom& room, DomainSeats& seats, Telemetry& telemetry, TaskLoop& loop,
                TaskLoop::Task arrived)
      : peers(tables.executors, tables.sessions),
        swaps(tables.executors, tables.instances, tables.sessions, peers, room, telemetry, loop,
              std::move(arrived)),
        moves(tables.executors, swaps),
        shards(tables.instances, tables.sessions, swaps, moves, scheduler, events, telemetry,
               {.ensure = [&seats](ExecutorKey key,
                                   const DomainSeats::Then& then) { seats.Ensure(key, then); },
                .require = [&seats](ExecutorKey key) { return seats.Require(key); },
                .left = [&seats](GpuIndex gpu) { seats.OnImageLeft(gpu); }}) {}

  PeerAccess peers;
  ImageSwaps swaps;
  ImageMoves moves;
  ShardSwaps shards;
};

struct MemoryServices {
  MemoryServices(NodeTables& tables, ImageServices& images, EventSink& events, TaskLoop& loop,
                 Bytes chunk_bytes, SessionSegments& segments, HostRoom& room,
                 SharedAllocations::FinishClosing finish_closing)
      : limits(tables.sessions, tables.executors, chunk_bytes),
        freed(tables.sessions, tables.executors, loop),
        device(tables.instances, tables.sessions, tables.executors, images.peers, limits, segments,
               room, freed, events, loop),
        host(tables.instances, tables.executors, limits, segments, room, loop),
        shared(tables.instances, tables.sessions, images.swaps, images.peers, device,
               std::move(finish_closing)) {}

  MemoryLimits limits;
  FreedPages freed;
  DeviceAllocations device;
  HostAllocations host;
  SharedAllocations shared;
};

}  // namespace torpor::server
